"""Rows of nested dictionaries as columns of numpy arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Columns = dict[str, npt.NDArray[Any]]


def _cells(row: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in row.items():
        if isinstance(value, Mapping):
            yield from _cells(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _array(values: list[Any]) -> npt.NDArray[Any]:
    present = [value for value in values if value is not None]
    if present and all(isinstance(value, bool) for value in present) and len(present) == len(values):
        return np.array(values, dtype=bool)
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in present):
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    if all(isinstance(value, str) for value in present):
        return np.array(["" if value is None else value for value in values], dtype=np.str_)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def columns_of(rows: Iterable[Mapping[str, Any]]) -> Columns:
    """One array for each field, all as long as there are rows; fields of nested objects are named
    `outer.inner`.

    Numbers are float64 with NaN where a row has none, strings have "" there. Lists stay as they are, in
    arrays of objects.
    """
    flat = [dict(_cells(row)) for row in rows]
    names = list(dict.fromkeys(name for row in flat for name in row))
    return {name: _array([row.get(name) for row in flat]) for name in names}
