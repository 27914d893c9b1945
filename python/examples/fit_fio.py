"""Fits the four cost models to JSON output of fio, and says which one predicts the drive best.

    fio --output-format=json --output=run.json my.fio
    python fit_fio.py run.json [more.json ...]

Each job of fio is a sample: its block size, its queue depth (iodepth times numjobs), reads or writes, random or
sequential. Give it jobs with several block sizes and several depths: models cannot tell setup from transfer,
nor concurrency from size, by one of each.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import flashgrain

UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def size_of(text: str) -> int:
    """Bytes of fio's sizes, such as 4k or 1M."""
    text = text.lower().rstrip("b").rstrip("i")
    unit = text[-1] if text[-1] in UNITS else ""
    return int(text.removesuffix(unit)) * UNITS[unit]


def rows_of(report: dict[str, Any]) -> list[tuple[float, float, float, float, float]]:
    """Block size, depth, bytes per second, share of reads and share of random requests of each job."""
    rows: list[tuple[float, float, float, float, float]] = []
    for job in report["jobs"]:
        options = {**report.get("global options", {}), **job.get("job options", {})}
        kind = options.get("rw", options.get("readwrite", "read"))
        size = size_of(options.get("bs", options.get("blocksize", "4k")).split(",")[0])
        depth = int(options.get("iodepth", 1))
        # With group_reporting fio has one entry for all threads of a job.
        threads = int(options.get("numjobs", 1)) if "group_reporting" in options else 1
        read, write = job["read"]["bw_bytes"], job["write"]["bw_bytes"]
        if read + write > 0:
            share = read / (read + write)
            rows.append((size, depth * threads, read + write, share, 1.0 if kind.startswith("rand") else 0.0))
    return rows


def main(paths: list[str]) -> None:
    rows = [row for path in paths for row in rows_of(json.loads(Path(path).read_text()))]
    sizes, depths, rates, reads, randoms = zip(*rows)
    samples = flashgrain.Samples(sizes, depths, rates, read_share=reads, random_share=randoms, experiment="fio")

    models = samples.fit()
    for parameter in models.parameters():
        estimate = parameter.estimate
        place = "" if parameter.at_concurrency is None else f" at {parameter.at_concurrency:g} requests in flight"
        text = f"{estimate.value:.4g} [{estimate.low:.4g}, {estimate.high:.4g}] {parameter.unit}"
        print(f"{parameter.model:6} {parameter.access or '':5} {parameter.symbol}{place}: {estimate.why or text}")

    try:
        comparison = samples.compare()
        print("best first:", ", ".join(comparison.ranking) or "not told apart", "-", comparison.ranking_reason)
    except flashgrain.errors.ArgumentError as error:
        print("no comparison:", error)

    for model in models.names:
        predicted = models.predict(model, 16384, [1, 8, 64])
        print(f"{model:6} 16 KiB random reads by 1, 8 and 64 streams: {predicted / 1e6} MB/s")


if __name__ == "__main__":
    main(sys.argv[1:])
