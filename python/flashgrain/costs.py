"""What operations of data structures cost on a drive, and advice for a program's workload."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Literal

from . import _flashgrain
from ._columns import Columns, columns_of
from ._flashgrain import AffineCosts, Design
from .models import DriveCosts, ModelName, Models
from .profiles import Profile

Operation = Literal["point_hit", "point_miss", "insert", "update", "delete", "range"]


@dataclass(frozen=True)
class Records:
    """What a dictionary has: `count` records with keys and values of so many bytes."""

    count: float
    key_bytes: float
    value_bytes: float


@dataclass(frozen=True)
class Cost:
    """What an operation costs in the steady state.

    `device_seconds` is the drive's time for each operation, `latency_seconds` the time of a client, and
    `binding` what limits the rate: "clients", "background", "device" or "processor".
    """

    device_seconds: float
    path_seconds: float
    operations_per_second: float
    latency_seconds: float
    binding: str


def cost(
    design: Design,
    operation: Operation,
    drive: DriveCosts,
    *,
    records: Records,
    cache_bytes: float,
    clients: float = 1.0,
    model: ModelName = "mqssd",
    range_bytes: float | None = None,
) -> Cost | None:
    """The cost of an operation of a design on a drive: fitted `Models`, of which `model` is asked, or
    `AffineCosts`. Keys are uniform, and changes are of records that are there.

    None if the drive has no costs for a kind of request that the operation makes.
    """
    priced = design.price(
        operation,
        drive=drive._models if isinstance(drive, Models) else drive,
        model=model,
        records=(records.count, records.key_bytes, records.value_bytes),
        cache_bytes=cache_bytes,
        clients=clients,
        range_bytes=range_bytes,
    )
    return None if priced is None else Cost(**priced)


def demand(
    design: Design,
    operation: Operation,
    *,
    records: Records,
    cache_bytes: float,
    clients: float = 1.0,
    range_bytes: float | None = None,
) -> dict[str, Any]:
    """The requests that an operation makes on average (`transfers`), and the design's amplifications."""
    return design.demand(
        operation,
        records=(records.count, records.key_bytes, records.value_bytes),
        cache_bytes=cache_bytes,
        clients=clients,
        range_bytes=range_bytes,
    )


class Advice:
    """Designs ranked for a workload on a drive, and settings of engines."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self._raw = raw

    @property
    def designs(self) -> list[str]:
        """Designs with their parameters, best first."""
        return [row["design"] for row in self._raw["ranking"]["rows"]]

    def ranking(self) -> Columns:
        """A row for each design, best first: `design`, `rate_per_second.value`, `latency_us.value`, `bound`,
        amplifications and lifetime; `.low` and `.high` are the ends of intervals."""
        return columns_of(self._raw["ranking"]["rows"])

    def settings(self, engine: str) -> Columns:
        """A row for each setting of an engine that advice was asked for: `name`, `value` ("" to leave it),
        `default`, `reason`, `gain.value`. Raises KeyError if it was not asked for."""
        return columns_of(self._engine(engine)["settings"])

    def file(self, engine: str) -> str:
        """The text that the engine loads: an OPTIONS file, PRAGMAs, a fragment of my.cnf, a configuration, or
        a command."""
        return str(self._engine(engine)["file"])

    def _engine(self, name: str) -> dict[str, Any]:
        for engine in self._raw["engines"]:
            if engine["engine"] == name:
                return dict(engine)
        raise KeyError(name)

    @property
    def notes(self) -> list[str]:
        """What the profile left undetermined, and what stands in: it widens the intervals."""
        return list(self._raw["notes"])

    def to_dict(self) -> dict[str, Any]:
        """Everything, as `flashgrain advise --json` prints it."""
        return self._raw

    def __repr__(self) -> str:
        return f"<flashgrain.Advice: {self.designs[0] if self.designs else 'nothing fits'}>"


def advise(
    profile: Profile | str | os.PathLike[str],
    workload: str,
    engines: list[str] | tuple[str, ...] = (),
) -> Advice:
    """Advice for a workload on the drive of a profile.

    `workload` is the name of a preset such as "ycsb-a", or the text of a workload file (docs/advise.md);
    `workload_preset` gives a preset as such a text. `engines` are "rocksdb", "sqlite", "mariadb",
    "wiredtiger" and "flashgrain", with a version as in "rocksdb:10" if another than the usual is wanted.
    """
    given = profile._profile if isinstance(profile, Profile) else profile
    return Advice(_flashgrain.advise(given, workload, list(engines)))


__all__ = ["Advice", "AffineCosts", "Cost", "Design", "Records", "advise", "cost", "demand"]
