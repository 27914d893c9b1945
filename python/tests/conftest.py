from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import flashgrain
from flashgrain import Store, Tree

KINDS = ["btree", "lsm", "be-tree"]


@pytest.fixture
def store() -> Iterator[Store]:
    with Store.in_memory(cache_bytes=64 << 20) as opened:
        yield opened


@pytest.fixture(params=KINDS)
def tree(store: Store, request: pytest.FixtureRequest) -> Tree:
    """A tree of each structure in turn."""
    return store.tree("fruit", request.param)


@pytest.fixture(scope="session")
def profile_path() -> Path:
    """The profile of a simulated drive that tests of the Rust workspace read, too."""
    return Path(__file__).parents[2] / "crates/profile/tests/fixtures/profile-v1.json"


@pytest.fixture(scope="session")
def samples() -> flashgrain.Samples:
    """Samples of a drive of the affine model: 100 µs and 1 GB/s for each of up to 8 streams at a time."""
    rows = [
        (size, streams, repeat)
        for size in (4096, 16384, 65536, 262144, 1 << 20)
        for streams in (1, 2, 4, 8, 16, 32)
        for repeat in range(3)
    ]
    rate = [
        min(streams, 8) * size / (1e-4 + size / 1e9) * (1 + 0.01 * (repeat - 1)) for size, streams, repeat in rows
    ]
    return flashgrain.Samples(
        [size for size, _, _ in rows],
        [streams for _, streams, _ in rows],
        rate,
        repeat=[repeat for _, _, repeat in rows],
    )
