"""Profiles of drives: what `flashgrain profile` has measured, fitted and decided."""

from __future__ import annotations

import os
from typing import Any, cast

from . import _flashgrain
from ._columns import Columns, columns_of
from .models import Comparison, Estimate, Models, Samples


class Profile:
    """A `profile.json`, read."""

    def __init__(self, profile: _flashgrain.Profile) -> None:
        self._profile = profile
        self._raw = profile.to_dict()

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Profile:
        """Reads a profile of this version or an older one.

        Raises ProfileError if the file is none, is damaged, or does not exist.
        """
        return cls(_flashgrain.Profile.load(path))

    @classmethod
    def parse(cls, content: bytes) -> Profile:
        """A profile from the bytes of its file."""
        return cls(_flashgrain.Profile.parse(content))

    @property
    def drive(self) -> str:
        """The drive's model name, or the name of the target."""
        identity = self._raw["provenance"]["identity"]
        return cast(str, identity.get("model") or identity["target"])

    @property
    def models(self) -> Models | None:
        """The fitted models; None if too little was measured."""
        models = self._profile.models()
        return None if models is None else Models(models)

    @property
    def burst_models(self) -> Models | None:
        """The models of writes that the drive's cache took; None where no cache shows."""
        models = self._profile.burst_models()
        return None if models is None else Models(models)

    @property
    def comparison(self) -> Comparison | None:
        """The models on held-out points; None if too little was measured."""
        raw = self._raw["comparison"]
        return None if raw is None else Comparison(raw)

    @property
    def experiments(self) -> list[str]:
        """The experiments that have measurements here."""
        measurements = self._raw["measurements"]
        return [name for name, rows in measurements.items() if isinstance(rows, list) and rows]

    def measurements(self, experiment: str) -> Columns:
        """A row for each workload of an experiment, such as "order": `workload.request_bytes`,
        `workload.concurrency`, `bytes_per_second` (median over repeats), `read_latency.p99_us` and so on.

        Raises KeyError if there is no such experiment, or it was not run. The keys are those of
        docs/profile-format.md.
        """
        rows = self._raw["measurements"].get(experiment)
        if not rows:
            raise KeyError(f"{experiment} was not run; there are {', '.join(self.experiments)}")
        return columns_of(rows if isinstance(rows, list) else [rows])

    def samples(self) -> Samples:
        """The throughputs that the models are fitted to, medians of repeats. The CSV file beside a profile
        has the repeats one by one: `Samples.read_csv`."""
        named = [(name, point) for name in ("order", "parallel", "size", "depth", "mix")
                 for point in self._raw["measurements"][name]]
        workloads = [point["workload"] for _, point in named]
        return Samples(
            [workload["request_bytes"] for workload in workloads],
            [workload["concurrency"] for workload in workloads],
            [point["bytes_per_second"] for _, point in named],
            read_share=[workload["read_share"] for workload in workloads],
            random_share=[workload["random_share"] for workload in workloads],
            experiment=[name for name, _ in named],
        )

    def headline(self) -> dict[str, float]:
        """The best rates that were measured: requests per second of random reads and writes of 4 KiB, and
        bytes per second of reads and writes of any size. Kinds that were not measured are missing."""
        best: dict[str, float] = {}
        for name in self.experiments:
            for row in self._raw["measurements"][name]:
                workload = row.get("workload")
                if not isinstance(workload, dict) or workload["read_share"] not in (0.0, 1.0):
                    continue
                kind = "read" if workload["read_share"] == 1.0 else "write"
                rates = {f"{kind}_bytes_per_second": row["bytes_per_second"]}
                if workload["request_bytes"] == 4096.0 and workload["random_share"] == 1.0:
                    rates[f"random_{kind}s_per_second"] = row["bytes_per_second"] / 4096.0
                for key, rate in rates.items():
                    best[key] = max(rate, best.get(key, 0.0))
        return best

    def learned(self) -> dict[str, Estimate]:
        """The hidden parameters and working points, by their names; those of nested objects are named
        `outer.inner`."""
        found: dict[str, Estimate] = {}

        def look(value: Any, name: str) -> None:
            if isinstance(value, dict):
                if "state" in value:
                    found[name] = Estimate._of(value)
                    return
                for key, inner in value.items():
                    look(inner, name if key == "estimate" else f"{name}.{key}".lstrip("."))

        look(self._raw["learned"], "")
        return found

    def decisions(self) -> Columns:
        """The settings that follow: a row for each, with the number that led to it in `because`."""
        return columns_of(self._raw["decisions"])

    def to_dict(self) -> dict[str, Any]:
        """The whole profile, with the keys of docs/profile-format.md."""
        return self._raw

    def __repr__(self) -> str:
        return f"<flashgrain.Profile of {self.drive}>"
