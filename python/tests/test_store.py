"""Opening, closing, transactions, batches, snapshots, backups, errors."""

from __future__ import annotations

import errno
import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from flashgrain import Store, Tree, errors


def test_what_is_written_is_there_again(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with Store.create(path, cache_bytes=32 << 20, log_bytes=8 << 20) as store:
        for kind in ("btree", "lsm", "be-tree"):
            store.tree(kind, kind)[b"key"] = kind.encode()
    with Store.open(str(path)) as store:
        assert store.tree_names() == ["be-tree", "btree", "lsm"]
        assert [store.existing_tree(name).kind for name in store.tree_names()] == ["be-tree", "btree", "lsm"]
        assert store.existing_tree("lsm")[b"key"] == b"lsm"
        assert store.stats()["recovery"]["was_closed"] is True
        assert store.check()["records"] == 3


def test_a_closed_store_can_be_opened_while_its_objects_live(tmp_path: Path) -> None:
    store = Store.open_or_create(tmp_path / "store")
    tree = store.tree("fruit")
    tree[b"a"] = b"1"
    objects = [iter(tree), store.snapshot(), store.transaction(), store.batch(), tree.items()]
    with pytest.raises(errors.LockedError):
        Store.open(tmp_path / "store")
    store.close()
    store.close()
    assert store.closed
    with Store.open(tmp_path / "store") as again:
        assert again.tree("fruit")[b"a"] == b"1"
    del objects


def test_objects_of_a_closed_store_raise(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "store")
    tree = store.tree("fruit")
    tree.update({b"a": b"1", b"b": b"2"})
    keys, snapshot, transaction, batch = iter(tree), store.snapshot(), store.transaction(), store.batch()
    assert next(keys) == b"a"
    store.close()
    for use in (
        lambda: tree[b"a"],
        lambda: next(keys),
        lambda: keys.next_back(),
        lambda: snapshot[tree][b"a"],
        lambda: transaction[tree].get(b"a"),
        lambda: transaction.commit(),
        lambda: batch.put(tree, b"a", b"1"),
        lambda: batch.commit(),
        lambda: list(tree.items()),
        lambda: store.tree("fruit"),
        lambda: store.stats(),
        lambda: tree.name,
    ):
        with pytest.raises(errors.ClosedError):
            use()
    assert "closed" in repr(store) and "closed" in repr(tree)


def test_a_store_that_is_forgotten_is_closed(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "store")
    tree = store.tree("fruit")
    tree[b"a"] = b"1"
    del store, tree
    gc.collect()
    with Store.open(tmp_path / "store") as again:
        assert again.stats()["recovery"]["was_closed"] is True


def test_the_end_of_the_interpreter_closes_stores(tmp_path: Path) -> None:
    program = f"""
import flashgrain
store = flashgrain.Store.create({str(tmp_path / "store")!r})
tree = store.tree("fruit")
tree[b"a"] = b"1"
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    with Store.open(tmp_path / "store") as store:
        assert store.stats()["recovery"]["was_closed"] is True
        assert store.tree("fruit")[b"a"] == b"1"


def test_transactions_commit_or_roll_back(store: Store, tree: Tree) -> None:
    other = store.tree("other")
    tree[b"a"] = b"1"
    with store.transaction() as tx:
        tx[tree][b"a"] = b"2"
        tx[other][b"b"] = b"3"
        assert tx[tree][b"a"] == b"2" and dict(tx[tree].items()) == {b"a": b"2"}
        assert tree[b"a"] == b"1" and b"b" not in other
    assert tree[b"a"] == b"2" and other[b"b"] == b"3"
    with pytest.raises(RuntimeError, match="stop"):
        with store.transaction() as tx:
            tx[tree][b"a"] = b"lost"
            raise RuntimeError("stop")
    assert tree[b"a"] == b"2"
    with store.transaction(durability="none") as tx:
        tx[tree].update({b"c": b"4"})
        assert tx[tree].pop(b"a") == b"2" and tx[tree].setdefault(b"c", b"5") == b"4"
        tx.rollback()
    assert tree[b"a"] == b"2" and b"c" not in tree
    with pytest.raises(errors.ClosedError):
        tx[tree][b"a"] = b"late"


def test_the_second_writer_of_a_key_loses(store: Store, tree: Tree) -> None:
    one, other = store.transaction(), store.transaction()
    one[tree][b"stock"] = b"4"
    other[tree][b"stock"] = b"3"
    one.commit()
    with pytest.raises(errors.ConflictError):
        other.commit()
    with pytest.raises(errors.ConflictError):
        with store.transaction() as tx:
            tx[tree][b"stock"] = b"2"
            tree[b"stock"] = b"1"
    assert tree[b"stock"] == b"1"


def test_a_store_closed_within_a_transaction_loses_its_writes_loudly(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "store")
    tree = store.tree("fruit")
    with pytest.raises(errors.ClosedError):
        with store.transaction() as tx:
            tx[tree][b"a"] = b"1"
            store.close()


def test_batches_are_one_commit(store: Store, tree: Tree) -> None:
    tree[b"old"] = b"1"
    with store.batch() as batch:
        batch.put(tree, b"a", b"1")
        batch.put(tree, b"b", b"2")
        batch.discard(tree, b"old")
        assert len(batch) == 3 and b"a" not in tree
    assert list(tree) == [b"a", b"b"]
    with pytest.raises(RuntimeError):
        with store.batch() as batch:
            batch.put(tree, b"c", b"3")
            raise RuntimeError
    assert b"c" not in tree


def test_a_snapshot_stays_as_it_is(store: Store, tree: Tree) -> None:
    tree[b"a"] = b"1"
    with store.snapshot() as snapshot:
        then = snapshot[tree]
        tree[b"a"] = b"2"
        tree[b"b"] = b"3"
        assert dict(then.items()) == {b"a": b"1"} and then.get(b"b") is None and len(then) == 1
        for write in (
            lambda: then.discard(b"a"),
            lambda: then.update({b"a": b"3"}),
            lambda: then.pop(b"a"),
            lambda: then.clear(),
            lambda: then.load([]),
            lambda: then.setdefault(b"a", b"1"),
        ):
            with pytest.raises(errors.ReadOnlyError, match="^a snapshot takes no writes$"):
                write()
    for use in (lambda: then[b"a"], lambda: list(then), lambda: then.discard(b"a"), lambda: snapshot.__enter__()):
        with pytest.raises(errors.ClosedError, match="the snapshot is closed"):
            use()
    snapshot.close()


def test_batches_and_scopes_take_trees_of_the_store(store: Store, tree: Tree) -> None:
    tree[b"a"] = b"1"
    snapshot, transaction, batch = store.snapshot(), store.transaction(), store.batch()
    for scoped in (snapshot[tree], transaction[tree]):
        for use in (
            lambda: batch.put(scoped, b"a", b"2"),
            lambda: batch.discard(scoped, b"a"),
            lambda: batch.merge(scoped, b"a", b"2"),
            lambda: transaction[scoped],
            lambda: snapshot[scoped],
        ):
            with pytest.raises(errors.ArgumentError, match="a tree of the store, not of a snapshot or transaction"):
                use()
    assert len(batch) == 0


def test_what_has_ended_says_how(store: Store, tree: Tree) -> None:
    committed, rolled_back, failed = store.transaction(), store.transaction(), store.transaction()
    for each in (committed, failed):
        each[tree][b"a"] = b"1"
    committed.commit()
    rolled_back.rollback()
    with pytest.raises(errors.ConflictError):
        failed.commit()
    for ended, words in (
        (committed, "the transaction has been committed"),
        (rolled_back, "the transaction has been rolled back"),
        (failed, "the transaction has ended with a failed commit"),
    ):
        for use in (ended.commit, ended.__enter__, lambda: ended[tree][b"a"], lambda: ended[tree].discard(b"a")):
            with pytest.raises(errors.ClosedError, match=words):
                use()
        ended.rollback()
    batch, dropped = store.batch(), store.batch()
    batch.put(tree, b"b", b"2")
    batch.commit()
    with pytest.raises(RuntimeError, match="stop"):
        with dropped:
            raise RuntimeError("stop")
    for over, words in ((batch, "the batch has been committed"), (dropped, "the batch has been rolled back")):
        for late in (over.commit, over.__enter__, lambda: len(over), lambda: over.put(tree, b"b", b"3")):
            with pytest.raises(errors.ClosedError, match=words):
                late()
    # A commit within the block is its end, and an exception after it is not hidden.
    with store.batch() as early:
        early.put(tree, b"c", b"3")
        early.commit()
    with pytest.raises(RuntimeError, match="stop"):
        with store.batch() as early:
            early.commit()
            raise RuntimeError("stop")
    assert dict(tree.items()) == {b"a": b"1", b"b": b"2", b"c": b"3"}


def test_a_closed_store_is_not_entered(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "store")
    entered = [store, store.snapshot(), store.transaction(), store.batch()]
    store.close()
    for each in entered:
        with pytest.raises(errors.ClosedError, match="the store is closed"):
            each.__enter__()  # type: ignore[attr-defined]
    entered[2].rollback()  # type: ignore[attr-defined]
    with pytest.raises(errors.ClosedError, match="the store is closed"):
        entered[2].commit()  # type: ignore[attr-defined]


def test_numbers_out_of_range_are_named(store: Store) -> None:
    for name in (
        "cache_bytes", "workers", "recovery_log_bytes", "checkpoint_dirty_bytes", "size_bytes_max",
        "write_unit_bytes", "segment_bytes", "flash_page_bytes", "log_bytes", "log_block_bytes", "node_bytes",
    ):
        for wrong in (-1, 1 << 70):
            with pytest.raises(errors.ArgumentError, match=f"{name} is {wrong}: use a whole number"):
                Store.in_memory(**{name: wrong})  # type: ignore[arg-type]
    for kind, name in (
        ("btree", "node_bytes"), ("lsm", "fanout"), ("lsm", "level_zero_runs"), ("lsm", "table_bytes"),
        ("lsm", "memtable_bytes"), ("be-tree", "buffered_node_bytes"), ("be-tree", "fanout"),
        ("be-tree", "memtable_bytes"),
    ):
        for wrong in (-1, 1 << 70):
            with pytest.raises(errors.ArgumentError, match=f"{name} is {wrong}: use a whole number"):
                store.tree("t", kind, **{name: wrong})  # type: ignore[arg-type]
    for bits in (10**400, -1.0, float("nan")):
        with pytest.raises(errors.ArgumentError, match="filter"):
            store.tree("t", "lsm", filter_bits_per_key=bits)
    assert store.tree_names() == []


def test_backups_are_stores(store: Store, tree: Tree, tmp_path: Path) -> None:
    tree.update({b"a": b"1", b"b": b"2"})
    assert store.backup(tmp_path / "copy", cache_bytes=8 << 20)["records"] == 2
    with Store.open(tmp_path / "copy", read_only=True) as copy:
        assert dict(copy.existing_tree("fruit").items()) == {b"a": b"1", b"b": b"2"}
        with pytest.raises(errors.ReadOnlyError):
            copy.existing_tree("fruit")[b"a"] = b"2"


def test_errors_have_classes(store: Store, tmp_path: Path) -> None:
    with pytest.raises(errors.NotFoundError):
        Store.open(tmp_path / "nothing")
    with pytest.raises(LookupError):
        store.existing_tree("nothing")
    Store.create(tmp_path / "store").close()
    with pytest.raises(errors.ExistsError):
        Store.create(tmp_path / "store")
    with pytest.raises(errors.ArgumentError, match="durability"):
        Store.in_memory(durability="perhaps")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="no option cache"):
        Store.in_memory(cache=1)  # type: ignore[call-arg]
    with pytest.raises(errors.ArgumentError, match="kind"):
        store.tree("a", "heap")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="btree has no option fanout"):
        store.tree("a", fanout=4)
    dropped = store.tree("dropped")
    store.drop_tree("dropped")
    with pytest.raises(errors.HandleError):
        dropped[b"a"]
    with Store.in_memory() as other, pytest.raises(errors.HandleError):
        with other.transaction() as tx:
            tx[store.tree("a")][b"b"] = b"c"
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), errors.FlashgrainError)


def test_errors_of_the_system_have_its_number(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(errors.FlashgrainError) as refused:
        Store.create(tmp_path / "file" / "store")
    if isinstance(refused.value, OSError):
        assert refused.value.errno == errno.ENOTDIR


def test_options_reach_the_store(tmp_path: Path) -> None:
    with Store.create(tmp_path / "store", cache_bytes=48 << 20, workers=1, durability="buffered") as store:
        assert store.stats()["cache"]["budget_bytes"] == 48 << 20
        lsm = store.tree("lsm", "lsm", fanout=4, layout="tiered", filter_bits_per_key=8.0, compression="lz4")
        assert any(row["value"] == "4" or row.get("amount") == 4 for row in lsm.layout())
        be_tree = store.tree("be", "be-tree", fanout=16, buffered_node_bytes=1 << 20)
        lsm[b"a"] = be_tree[b"a"] = b"1"
        assert lsm.stats() is not None and be_tree.stats() is not None and store.tree("b").stats() is None
        store.checkpoint()
        store.sync()
        before, after = store.compact()
        assert 0 < after <= before
        assert store.layout()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_is_refused(tmp_path: Path) -> None:
    program = f"""
import os, sys, threading, warnings
warnings.simplefilter("ignore")
import flashgrain
store = flashgrain.Store.create({str(tmp_path / "store")!r})
tree = store.tree("fruit")
tree[b"a"] = b"1"
snapshot, keys, tx = store.snapshot(), iter(tree), store.transaction()
child = os.fork()
if child == 0:
    refused = 0
    for use in (lambda: tree[b"a"], lambda: tree.__setitem__(b"a", b"2"), lambda: next(keys),
                lambda: snapshot[tree][b"a"], tx.commit, store.close, lambda: store.tree("x")):
        try:
            use()
        except flashgrain.errors.ForkedError:
            refused += 1
    sys.exit(0 if refused == 7 and store.closed else 1)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0, status
tree[b"b"] = b"2"
assert dict(tree.items()) == {{b"a": b"1", b"b": b"2"}}
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    with Store.open(tmp_path / "store") as store:
        assert store.stats()["recovery"]["was_closed"] is True
