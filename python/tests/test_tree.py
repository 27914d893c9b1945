"""Trees as mutable mappings."""

from __future__ import annotations

import random
from collections.abc import MutableMapping

import pytest

from flashgrain import Store, Tree, errors


def test_a_tree_is_a_mutable_mapping(tree: Tree) -> None:
    assert isinstance(tree, MutableMapping)
    assert not tree and len(tree) == 0 and tree.first() is None
    tree[b"apple"] = b"red"
    tree[b"banana"] = b"yellow"
    assert tree and len(tree) == 2
    assert tree[b"apple"] == b"red" and b"apple" in tree and b"cherry" not in tree
    assert tree.get(b"cherry") is None and tree.get(b"cherry", b"?") == b"?"
    assert list(tree) == [b"apple", b"banana"] and list(reversed(tree)) == [b"banana", b"apple"]
    assert list(tree.values()) == [b"red", b"yellow"]
    assert dict(tree.items()) == {b"apple": b"red", b"banana": b"yellow"}
    del tree[b"apple"]
    with pytest.raises(KeyError) as missing:
        tree[b"apple"]
    assert missing.value.args == (b"apple",)
    with pytest.raises(KeyError):
        del tree[b"apple"]
    assert tree.last() == (b"banana", b"yellow")


def test_removal_returns_the_value(tree: Tree) -> None:
    tree.update({b"a": b"1", b"b": b"2", b"c": b"3"})
    assert tree.pop(b"a") == b"1"
    assert tree.pop(b"a", None) is None
    with pytest.raises(KeyError):
        tree.pop(b"a")
    assert tree.popitem() == (b"c", b"3")
    tree.discard(b"b")
    tree.discard(b"b")
    with pytest.raises(KeyError):
        tree.popitem()


def test_conditional_writes_see_the_value(tree: Tree) -> None:
    assert tree.setdefault(b"a", b"1") == b"1"
    assert tree.setdefault(b"a", b"2") == b"1"
    assert not tree.compare_and_swap(b"a", b"2", b"3")
    assert tree.compare_and_swap(b"a", b"1", b"3") and tree[b"a"] == b"3"
    assert tree.compare_and_swap(b"b", None, b"new") and tree.compare_and_swap(b"b", b"new", None)
    assert b"b" not in tree


def test_ranges_go_both_ways(tree: Tree) -> None:
    tree.update((bytes([number]), bytes([number, 1])) for number in range(200))
    few = tree.range(b"\x0a", b"\x0d")
    assert [key for key, _ in few] == [b"\x0a", b"\x0b", b"\x0c"]
    assert [key for key, _ in reversed(few)] == [b"\x0c", b"\x0b", b"\x0a"]
    assert list(tree.keys(b"\x0a", b"\x0d", reverse=True)) == [b"\x0c", b"\x0b", b"\x0a"]
    assert few.count() == 3 and (b"\x0b", b"\x0b\x01") in few and (b"\x0d", b"\x0d\x01") not in few
    assert b"\x0b" in tree.keys(b"\x0a") and b"\x09" not in tree.keys(b"\x0a")
    assert b"\x0b\x01" in tree.values(b"\x0a") and b"\x09\x01" not in tree.values(b"\x0a")
    for other in ("a", 1, None, (b"a",), ("a", "b")):
        assert other not in tree.keys() and other not in tree.values() and other not in tree.items()
    assert tree.keys(stop=b"\x05").count() == 5 and tree.keys(b"\x05", b"\x05").count() == 0
    tree[b"ab"], tree[b"a\xff"], tree[b"b"] = b"", b"", b""
    assert [key for key, _ in tree.prefix(b"a")] == [b"a", b"ab", b"a\xff"]


def test_both_ends_of_an_iterator_meet(tree: Tree) -> None:
    keys = [number.to_bytes(2, "big") for number in range(1000)]
    tree.load((key, b"x") for key in keys)
    draw = random.Random(7)
    both = iter(tree)
    front: list[bytes] = []
    back: list[bytes] = []
    while True:
        if draw.random() < 0.5:
            key = next(both, None)
            taken = front
        else:
            key = both.next_back()
            taken = back
        if key is None:
            break
        taken.append(key)
    assert next(both, None) is None and both.next_back() is None
    assert front + back[::-1] == keys and front and back


def test_an_iterator_sees_one_moment(tree: Tree) -> None:
    tree.update({b"a": b"1", b"b": b"2"})
    keys = iter(tree)
    assert next(keys) == b"a"
    del tree[b"b"]
    tree[b"c"] = b"3"
    assert list(keys) == [b"b"]
    assert list(tree) == [b"a", b"c"]


def test_keys_are_bytes(tree: Tree) -> None:
    tree[bytearray(b"a")] = memoryview(b"xyz")[1:]
    assert tree[memoryview(b"a")] == b"yz"
    for wrong in ("a", 1, None, [97]):
        with pytest.raises(TypeError, match="bytes"):
            tree[wrong] = b"x"  # type: ignore[index]
        with pytest.raises(TypeError, match="bytes"):
            tree[b"x"] = wrong  # type: ignore[assignment]
    with pytest.raises(errors.ArgumentError):
        tree[b""] = b"x"
    with pytest.raises(ValueError):
        tree[b"k" * (tree.key_bytes_max + 1)] = b"x"
    with pytest.raises(TypeError):
        tree.update(a=b"1")
    assert list(tree) == [b"a"]


def test_many_values_in_the_order_of_the_keys(tree: Tree) -> None:
    tree.update({b"a": b"1", b"c": b"3"})
    assert tree.get_many([b"c", b"b", b"a", b"c"]) == [b"3", None, b"1", b"3"]
    assert tree.get_many([]) == []


def test_a_model_agrees(tree: Tree) -> None:
    model: dict[bytes, bytes] = {}
    draw = random.Random(3)
    for _ in range(2000):
        key = draw.randrange(300).to_bytes(2, "big")
        if draw.random() < 0.6:
            value = draw.randbytes(draw.randrange(300))
            tree[key] = model[key] = value
        else:
            assert tree.pop(key, None) == model.pop(key, None)
    assert list(tree.items()) == sorted(model.items())
    assert tree.remove_range(b"\x00\x20", b"\x00\x80") == sum(b"\x00\x20" <= key < b"\x00\x80" for key in model)
    tree.clear()
    assert len(tree) == 0


def test_loading_refuses_disorder(tree: Tree) -> None:
    assert tree.load((number.to_bytes(4, "big"), b"v" * 100) for number in range(3000)) == 3000
    assert len(tree) == 3000
    with pytest.raises(errors.ArgumentError, match="order"):
        tree.load([(b"z", b"1"), (b"y", b"2")])

    def broken() -> object:
        yield (b"\xff", b"1")
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        tree.load(broken())  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        tree.load([(b"a",)])  # type: ignore[list-item]


def test_merges_add_and_append(store: Store) -> None:
    counters = store.tree("counters", "lsm", merge_operator="add")
    for _ in range(3):
        counters.merge(b"visits", (2).to_bytes(8, "little"))
    assert int.from_bytes(counters[b"visits"], "little") == 6
    log = store.tree("log", merge_operator="append")
    log.merge(b"day", b"a")
    log.merge(b"day", b"b")
    assert log[b"day"] == b"ab"
    with pytest.raises(errors.OperatorError):
        store.tree("plain").merge(b"a", b"b")


def test_large_values(tree: Tree) -> None:
    value = random.Random(1).randbytes(3 << 20)
    tree[b"film"] = value
    assert tree[b"film"] == value and dict(tree.items()) == {b"film": value}
