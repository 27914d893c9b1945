"""A dictionary that is larger than the memory it may use: word counts of a text, kept on a drive.

    python larger_than_memory.py FOLDER [TEXT ...]

Without a text it makes one up, with two million different words. The store uses `cache_bytes` of memory however many words there are, and what
was counted is there again after the program ends, or is killed.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import flashgrain

WORDS_PER_COMMIT = 100_000


def words_of(paths: list[str], made_up: int) -> Iterator[str]:
    for path in paths:
        with open(path, encoding="utf-8", errors="replace") as text:
            for line in text:
                yield from line.lower().split()
    if not paths:
        draw = random.Random(1)
        for _ in range(made_up):
            # Half of them are the few words that every text repeats, the others are new.
            frequent = draw.random() < 0.5
            yield f"word{int(draw.paretovariate(1)) if frequent else draw.randrange(10**9)}"


def count(store: flashgrain.Store, words: Iterable[str]) -> None:
    """Adds to the counts. The merge operator "add" reads nothing first, so an LSM-tree counts as fast as it
    writes."""
    counts = store.tree("counts", "lsm", merge_operator="add")

    def commit(some: Counter[str]) -> None:
        # All or nothing: after a crash a part of the text was counted, never half of a part.
        with store.batch() as batch:
            for word, number in some.items():
                batch.merge(counts, word.encode(), number.to_bytes(8, "little"))

    some: Counter[str] = Counter()
    for number, word in enumerate(words, start=1):
        # Keys have a limit; longer words are cut.
        some[word[:200]] += 1
        if len(some) >= 10_000 or number % WORDS_PER_COMMIT == 0:
            commit(some)
            some.clear()
    commit(some)


def main(folder: str, paths: list[str], made_up: int = 4_000_000, cache_bytes: int = 16 << 20) -> None:
    with flashgrain.Store.open_or_create(Path(folder), cache_bytes=cache_bytes) as store:
        count(store, words_of(paths, made_up))
        counts = store.tree("counts", "lsm", merge_operator="add")
        total, distinct, most = 0, 0, (0, b"")
        for word, value in counts.items():
            number = int.from_bytes(value, "little")
            total, distinct, most = total + number, distinct + 1, max(most, (number, word))
        print(f"{total} words, {distinct} different ones; the most frequent: {most[1].decode()} ({most[0]})")
        stats = store.stats()
        print(f"memory {stats['cache']['budget_bytes'] >> 20} MiB, "
              f"tables on the drive {stats['space']['owned_bytes'] >> 20} MiB")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
