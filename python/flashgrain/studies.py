"""The answers that `flashgrain study run` keeps in a folder, as arrays."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ._columns import Columns, columns_of
from .errors import ArgumentError


class StudyAnswer:
    """The answer to one question of a study with one seed: a JSON file of the folder."""

    def __init__(self, name: str, raw: dict[str, Any]) -> None:
        self.name = name
        self._raw = raw

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> StudyAnswer:
        """Reads a file. Raises ArgumentError if it is no answer of a study, and OSError if it cannot be
        read."""
        path = Path(path)
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ArgumentError(f"{path}: not JSON: {error}") from error
        if not isinstance(raw, dict) or not {"arguments", "comparisons", "result"} <= raw.keys():
            raise ArgumentError(f"{path}: not an answer of `flashgrain study run`")
        return cls(path.stem, raw)

    @property
    def seed(self) -> int | None:
        """The seed of the run."""
        found = re.search(r"-seed-(\d+)$", self.name)
        return int(found.group(1)) if found else None

    @property
    def arguments(self) -> list[str]:
        """The arguments that the study was run with."""
        return list(self._raw["arguments"])

    @property
    def seconds(self) -> float:
        """How long it ran, in real time."""
        return float(self._raw["seconds"])

    def comparisons(self) -> Columns:
        """The paper's numbers beside ours: `source`, `name`, `measure`, `papers`, `ours.value`, and in
        `apart` why two numbers cannot be compared. Points that were not run have NaN."""
        rows = [
            {**row, "ours": row["ours"] or {"value": None, "low": None, "high": None}}
            for row in self._raw["comparisons"]
        ]
        return columns_of(rows)

    def tables(self) -> dict[str, Columns]:
        """Everything that was measured: each list of objects in the answer as columns, by its path, such as
        "levels" or "mixes.0.points"."""
        return {path or "result": columns_of(rows) for path, rows in _tables(self._raw["result"], "")}

    @property
    def result(self) -> Any:
        """Everything that was measured, as the study's `--json` prints it."""
        return self._raw["result"]

    def __repr__(self) -> str:
        return f"<flashgrain.StudyAnswer {self.name}>"


def _tables(value: Any, path: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _tables(inner, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list) and value:
        if all(isinstance(row, dict) for row in value):
            yield path, value
        for number, inner in enumerate(value):
            yield from _tables(inner, f"{path}.{number}".lstrip("."))


def load_studies(folder: str | os.PathLike[str] = "flashgrain-out/studies") -> list[StudyAnswer]:
    """All answers of a folder, by name. Other files there are left out."""
    return [StudyAnswer.load(path) for path in sorted(Path(folder).glob("*-seed-*.json"))]
