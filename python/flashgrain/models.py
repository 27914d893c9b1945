"""The DAM, PDAM, affine and MQSSD cost models of a drive: samples, fits, predictions, comparisons."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Literal, Union, cast

import numpy as np
import numpy.typing as npt

from . import _flashgrain
from ._columns import Columns, columns_of
from .errors import ArgumentError

ModelName = Literal["dam", "pdam", "affine", "mqssd"]
FloatArray = npt.NDArray[np.float64]

_COLUMNS = ("read_share", "request_bytes", "random_share", "concurrency", "bytes_per_second")


@dataclass(frozen=True)
class Estimate:
    """A number as far as measurements determine it, with the 95 % bootstrap interval.

    `value`, `low` and `high` are NaN if they do not determine it, and `why` says why.
    """

    value: float
    low: float
    high: float
    why: str | None = None

    @property
    def is_determined(self) -> bool:
        """Whether there is a value."""
        return self.why is None

    @classmethod
    def _of(cls, raw: dict[str, Any]) -> Estimate:
        if raw["state"] == "determined":
            return cls(raw["value"], raw["low"], raw["high"])
        return cls(float("nan"), float("nan"), float("nan"), raw["why"])


@dataclass(frozen=True)
class Parameter:
    """A fitted number: `name` such as "setup", the paper's `symbol`, the `unit` of its estimate, and the
    concurrency and kind of access ("read" or "write") that it belongs to, if it belongs to one."""

    model: ModelName
    name: str
    symbol: str
    unit: str
    at_concurrency: float | None
    access: str | None
    estimate: Estimate


def _workloads(
    request_bytes: npt.ArrayLike,
    concurrency: npt.ArrayLike,
    read_share: npt.ArrayLike,
    random_share: npt.ArrayLike,
    *others: npt.ArrayLike,
) -> tuple[tuple[int, ...], list[list[float]]]:
    """The common shape of the arguments, and each as a flat list of that many numbers: read_share,
    request_bytes, random_share, concurrency, and the others."""
    given = (read_share, request_bytes, random_share, concurrency, *others)
    try:
        arrays = np.broadcast_arrays(*(np.asarray(values, dtype=np.float64) for values in given))
    except OverflowError as error:
        raise ArgumentError(f"a number is too large: {error}") from error
    return arrays[0].shape, [array.ravel().tolist() for array in arrays]


class Models:
    """Fitted models of one drive. Those that the samples do not support are missing."""

    def __init__(self, models: _flashgrain.Models) -> None:
        self._models = models

    @property
    def names(self) -> list[ModelName]:
        """The models that there are, coarsest first."""
        return cast("list[ModelName]", self._models.names())

    def __contains__(self, model: object) -> bool:
        return model in self._models.names()

    def predict(
        self,
        model: ModelName,
        request_bytes: npt.ArrayLike,
        concurrency: npt.ArrayLike = 1.0,
        *,
        read_share: npt.ArrayLike = 1.0,
        random_share: npt.ArrayLike = 1.0,
    ) -> FloatArray:
        """Bytes per second of workloads; the arguments are broadcast against each other.

        A workload has `concurrency` requests of `request_bytes` outstanding at any time. A share
        `random_share` of them begins at a random place, the others go on where the stream's last one ended,
        and a share `read_share` of them are reads. NaN where the model has no data of that kind.

        Raises ArgumentError if there is no such model, and naming the point for sizes and concurrencies that are
        not above 0 and shares outside of 0 to 1.
        """
        shape, columns = _workloads(request_bytes, concurrency, read_share, random_share)
        rates = self._models.bytes_per_second(model, *columns)
        return np.array(rates, dtype=np.float64).reshape(shape)

    def parameters(self, model: ModelName | None = None) -> list[Parameter]:
        """The fitted numbers of one model, or of all."""
        all_of_them = [
            Parameter(**{**raw, "estimate": Estimate._of(raw["estimate"])}) for raw in self._models.parameters()
        ]
        return [one for one in all_of_them if model is None or one.model == model]

    def to_dict(self) -> dict[str, Any]:
        """Everything, as a profile has it."""
        return self._models.to_dict()

    def __repr__(self) -> str:
        return f"<flashgrain.Models {', '.join(self.names)}>"


class Comparison:
    """The models on points that they were not fitted to."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self._raw = raw

    @property
    def ranking(self) -> list[ModelName]:
        """Best first; empty if the measurements do not show which is."""
        return cast("list[ModelName]", self._raw["ranking"])

    @property
    def ranking_reason(self) -> str:
        """Why the first is first, with numbers."""
        return cast(str, self._raw["ranking_reason"])

    def errors(self) -> Columns:
        """A row for each model and kind of access: `model`, `access` ("" for mixes), `r_squared`,
        `median_relative_error`, `worst_relative_error`, `points`, `constants`."""
        return columns_of(self._raw["rows"])

    def points(self) -> Columns:
        """A row for each workload: `workload.request_bytes` and so on, `bytes_per_second` as measured, and
        `predicted.mqssd` and so on."""
        rows = []
        for raw in self._raw["points"]:
            row = {key: value for key, value in raw.items() if key != "predicted_bytes_per_second"}
            row["predicted"] = dict(raw["predicted_bytes_per_second"])
            rows.append(row)
        return columns_of(rows)

    def noise_floor(self) -> Columns:
        """The noise of the measurement for each kind of access: no model can be expected to be better."""
        return columns_of(self._raw["noise_floor"])

    def to_dict(self) -> dict[str, Any]:
        """Everything, as a profile has it."""
        return self._raw

    def __repr__(self) -> str:
        return f"<flashgrain.Comparison {' < '.join(self.ranking) or 'without a ranking'}>"


class Samples:
    """Throughputs of trials on one drive, as columns of equal lengths.

    Numbers are broadcast: `read_share=1.0` counts for all rows. Repeats of a workload are rows of their own
    with `repeat` 0, 1, ...: fits take their median, and comparisons their noise. `experiment` is a name as a CSV
    file keeps it: not empty, without spaces at its ends and `#` in front.

    Raises ArgumentError naming the row that makes no sense.
    """

    def __init__(
        self,
        request_bytes: npt.ArrayLike,
        concurrency: npt.ArrayLike,
        bytes_per_second: npt.ArrayLike,
        *,
        read_share: npt.ArrayLike = 1.0,
        random_share: npt.ArrayLike = 1.0,
        experiment: str | list[str] = "external",
        repeat: npt.ArrayLike = 0,
    ) -> None:
        shape, columns = _workloads(request_bytes, concurrency, read_share, random_share, bytes_per_second, repeat)
        reads, sizes, randoms, streams, rates, repeats = columns
        rows = len(repeats)
        experiments = [experiment] * rows if isinstance(experiment, str) else list(experiment)
        if len(shape) > 1 or len(experiments) != rows:
            raise ArgumentError(
                f"columns must be one-dimensional and of equal lengths: {rows} rows, {len(experiments)} experiments"
            )
        for row, number in enumerate(repeats):
            if not (0 <= number < 1 << 32 and number == int(number)):
                raise ArgumentError(f"row {row}: repeat is {number}: use a whole number from 0 to {(1 << 32) - 1}")
        whole = [int(number) for number in repeats]
        self._samples = _flashgrain.Samples(reads, sizes, randoms, streams, rates, experiments, whole)

    @classmethod
    def read_csv(cls, path: str | os.PathLike[str]) -> Samples:
        """Reads the CSV form, such as the samples beside a profile: `request_bytes`, `concurrency`,
        `bytes_per_second`, `read_share` or `access`, and others.

        Raises ArgumentError with the path and the line, and OSError if the file cannot be read.
        """
        samples = cls.__new__(cls)
        samples._samples = _flashgrain.Samples.read_csv(path)
        return samples

    def write_csv(self, path: str | os.PathLike[str]) -> None:
        """Writes the CSV form, which `flashgrain compare` and `flashgrain tune` read."""
        self._samples.write_csv(path)

    def __len__(self) -> int:
        return len(self._samples)

    def columns(self) -> Columns:
        """The columns as arrays, by their names."""
        return {
            name: np.array(values, dtype=np.float64 if name in _COLUMNS else None)
            for name, values in self._samples.columns().items()
        }

    def fit(self, *, page_bytes: float = 4096.0, resamples: int = 300, seed: int = 1) -> Models:
        """Fits all models: each to reads and to writes on their own, by the squared logarithm of predicted
        over measured. `resamples` is the number of refits for the intervals, and `page_bytes` the page that
        per-page costs refer to, above 0. Ctrl-C ends the call."""
        return Models(self._samples.fit(page_bytes, resamples, seed))

    def compare(self, *, page_bytes: float = 4096.0, resamples: int = 300, seed: int = 1) -> Comparison:
        """Judges the models on points that they were not fitted to."""
        return Comparison(self._samples.compare(page_bytes, resamples, seed))

    def __repr__(self) -> str:
        return f"<flashgrain.Samples of {len(self)} trials>"


DriveCosts = Union[Models, _flashgrain.AffineCosts]
