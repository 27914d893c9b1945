"""Simulated drives in virtual time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from . import _flashgrain
from .errors import ArgumentError

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Latencies:
    """The distribution of latencies of a run: `counts[i]` requests took up to `microseconds[i]`, in
    ascending order and with three significant digits, and percentiles in microseconds."""

    microseconds: FloatArray
    counts: npt.NDArray[np.uint64]
    percentiles: dict[str, float]

    def cumulative_share(self) -> FloatArray:
        """The share of requests that took at most `microseconds[i]`: what a plot of the distribution has as
        its other axis."""
        total = max(int(self.counts.sum()), 1)
        return np.asarray(np.cumsum(self.counts) / total, dtype=np.float64)


@dataclass(frozen=True)
class Run:
    """What a load reached, without its warm-up."""

    seconds: float
    requests: int
    bytes_per_second: float
    requests_per_second: float
    read_latency: Latencies
    write_latency: Latencies


class Drive:
    """A simulated drive: flash, 3D XPoint or a hard disk.

    `name` is a preset (`drive_presets()`), a stripe set such as "8xpm1733", or the path of a .toml or .xml
    description. `state` is "fresh", "filled" or "steady-random", where a share `working_set` was written at
    random; unless given it is the preset's.

    Times are virtual: the same arguments give the same figures on every machine.
    """

    def __init__(
        self,
        name: str,
        *,
        state: Literal["fresh", "filled", "steady-random"] | None = None,
        working_set: float = 1.0,
        seed: int = 1,
    ) -> None:
        self._drive = _flashgrain.Drive(name, state=state, working_set=working_set, seed=seed)

    @property
    def name(self) -> str:
        """The drive's model name."""
        return self._drive.name

    @property
    def capacity_bytes(self) -> int:
        """Bytes of the drive."""
        return self._drive.capacity_bytes

    @property
    def sector_bytes(self) -> int:
        """Bytes that offsets and lengths are multiples of."""
        return self._drive.sector_bytes

    def run(
        self,
        *,
        request_bytes: int = 4096,
        concurrency: int = 1,
        read_share: float = 1.0,
        random_share: float = 1.0,
        requests: int | None = None,
        seconds: float | None = None,
        rate_per_s: float | None = None,
        warmup_share: float = 0.0,
        seed: int = 1,
    ) -> Run:
        """Runs a load until `requests` are done, or for so many virtual `seconds`: 10,000 requests unless one
        of them is given.

        A closed loop of `concurrency` streams with one request outstanding each; with `rate_per_s` an open
        loop, whose latencies count from the time at which a request should have begun. The state of the drive
        goes on from run to run.

        A run takes at most a million virtual seconds: ArgumentError for more `seconds`, and for a `rate_per_s` at
        which `requests` take longer. Ctrl-C ends the call; the drive then keeps the requests that were done.
        """
        if requests is None and seconds is None:
            requests = 10_000
        raw = self._drive.run(
            read_share=read_share,
            request_bytes=request_bytes,
            random_share=random_share,
            concurrency=concurrency,
            requests=requests,
            seconds=seconds,
            rate_per_s=rate_per_s,
            warmup_share=warmup_share,
            seed=seed,
        )
        return Run(
            raw["seconds"],
            raw["requests"],
            raw["bytes_per_second"],
            raw["requests_per_second"],
            _latencies(raw, "read"),
            _latencies(raw, "write"),
        )

    def latencies_us(
        self,
        offsets: npt.ArrayLike,
        lengths: npt.ArrayLike = 4096,
        *,
        writes: npt.ArrayLike = False,
        in_flight: int = 1,
    ) -> FloatArray:
        """Microseconds that each of these requests takes, in their order, with at most `in_flight` of them at
        the same time. `lengths` and `writes` are broadcast against `offsets`; none are an empty array."""
        arrays = np.broadcast_arrays(np.asarray(offsets), np.asarray(lengths), np.asarray(writes, dtype=bool))
        if arrays[0].size == 0:
            return np.empty(arrays[0].shape)
        if any(array.dtype.kind not in "iu" for array in arrays[:2]) or any((a < 0).any() for a in arrays[:2]):
            raise ArgumentError("offsets and lengths are bytes: whole numbers from 0 on")
        if (arrays[1] > 1 << 30).any():
            raise ArgumentError("a request has at most 1 GiB")
        places, sizes, kinds = (array.ravel().tolist() for array in arrays)
        latencies_ns = self._drive.requests(places, sizes, kinds, in_flight)
        return np.array(latencies_ns, dtype=np.float64).reshape(arrays[0].shape) / 1e3

    def statistics(self) -> dict[str, Any]:
        """Counters since the drive was made, such as the flash pages that were programmed, and the virtual
        time in seconds."""
        return self._drive.statistics()

    def to_toml(self) -> str:
        """The description of the drive, every field with its value."""
        return self._drive.to_toml()

    def __repr__(self) -> str:
        return f"<flashgrain.Drive {self.name}>"


def _latencies(raw: dict[str, Any], kind: str) -> Latencies:
    return Latencies(
        np.array(raw[f"{kind}_latency_ns"], dtype=np.float64) / 1e3,
        np.array(raw[f"{kind}_latency_counts"], dtype=np.uint64),
        raw[f"{kind}_latency"],
    )
