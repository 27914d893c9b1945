"""Threads: the interpreter lock is released while the store waits, and objects are safe to share."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from flashgrain import Store, errors

# A call that keeps the interpreter lock leaves the counter no step, or one.
STEPS_MIN = 5


def steps_meanwhile(work: object) -> int:
    """The steps that another thread makes while this one is in a single call."""
    steps = 0
    is_over = threading.Event()
    has_begun = threading.Event()

    def count() -> None:
        nonlocal steps
        while not is_over.is_set():
            steps += 1
            has_begun.set()
            time.sleep(0.0001)

    counter = threading.Thread(target=count)
    counter.start()
    has_begun.wait()
    before = steps
    work()  # type: ignore[operator]
    made = steps - before
    is_over.set()
    counter.join()
    return made


def test_a_commit_lets_other_threads_run(tmp_path: Path) -> None:
    with Store.create(tmp_path / "store") as store:
        tree = store.tree("fruit")

        # A call that waits: a large value, made durable.
        def write() -> None:
            tree[b"large"] = bytes(48 << 20)

        assert steps_meanwhile(write) >= STEPS_MIN
        store.check()


def test_a_scan_lets_other_threads_run(store: Store) -> None:
    tree = store.tree("fruit")
    tree.load((number.to_bytes(4, "big"), b"x" * 20) for number in range(200_000))
    assert steps_meanwhile(lambda: len(tree)) >= STEPS_MIN


def test_threads_share_a_store(store: Store) -> None:
    tree = store.tree("counters")
    tree[b"n"] = (0).to_bytes(8, "big")
    conflicts = 0

    def add() -> None:
        nonlocal conflicts
        for _ in range(100):
            while True:
                try:
                    with store.transaction() as tx:
                        counters = tx[tree]
                        number = int.from_bytes(counters[b"n"], "big")
                        counters[b"n"] = (number + 1).to_bytes(8, "big")
                    break
                except errors.ConflictError:
                    conflicts += 1

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert int.from_bytes(tree[b"n"], "big") == 400


def test_an_iterator_can_be_shared(store: Store) -> None:
    tree = store.tree("fruit")
    keys = [number.to_bytes(2, "big") for number in range(5000)]
    tree.load((key, b"") for key in keys)
    shared = iter(tree)
    taken: list[list[bytes]] = [[] for _ in range(4)]
    threads = [threading.Thread(target=mine.extend, args=(shared,)) for mine in taken]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(key for mine in taken for key in mine) == keys


def test_a_store_can_be_closed_while_threads_use_it(tmp_path: Path) -> None:
    for _ in range(5):
        store = Store.open_or_create(tmp_path / "store", durability="none")
        tree = store.tree("fruit")
        ends: list[BaseException] = []
        has_begun = threading.Barrier(4)

        def use() -> None:
            has_begun.wait()
            try:
                while True:
                    tree[b"a"] = b"1"
                    list(tree.items())
            except errors.FlashgrainError as error:
                ends.append(error)

        threads = [threading.Thread(target=use) for _ in range(3)]
        for thread in threads:
            thread.start()
        has_begun.wait()
        time.sleep(0.01)
        store.close()
        for thread in threads:
            thread.join(timeout=30)
        assert [type(end) for end in ends] == [errors.ClosedError] * 3


def test_records_may_close_the_store_that_they_are_loaded_into(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "store")
    tree = store.tree("fruit")

    def records() -> object:
        for number in range(5000):
            if number == 3000:
                store.close()
            yield number.to_bytes(4, "big"), b"v"

    with pytest.raises(errors.ClosedError):
        tree.load(records())  # type: ignore[arg-type]
