"""Plots latency over load, and the distribution of latencies, of a simulated drive or of a profiled one.

    python plot_drive.py 970evo [drive.png]
    python plot_drive.py profile.json [drive.png]

A simulated drive is run in virtual time, so the same figure comes out on every machine. Without matplotlib
(`pip install flashgrain[plot]`) the numbers are printed.
"""

from __future__ import annotations

import sys

import numpy as np
import numpy.typing as npt

import flashgrain

Curve = tuple[str, npt.NDArray[np.float64], npt.NDArray[np.float64]]


def of_simulated(name: str, requests: int = 20_000) -> tuple[list[Curve], list[Curve]]:
    """Latency over requests per second at rising depths, and distributions at three of them."""
    load: list[Curve] = []
    distributions: list[Curve] = []
    for kind, read_share in (("reads", 1.0), ("writes", 0.0), ("half reads", 0.5)):
        rates, latencies = [], []
        for depth in (1, 2, 4, 8, 16, 32, 64, 128):
            run = flashgrain.Drive(name).run(requests=requests, concurrency=depth, read_share=read_share)
            rates.append(run.requests_per_second)
            latencies.append(depth / run.requests_per_second * 1e6)
            if read_share == 1.0 and depth in (1, 16, 128):
                found = run.read_latency
                distributions.append((f"{depth} in flight", found.microseconds, found.cumulative_share()))
        load.append((kind, np.array(rates), np.array(latencies)))
    return load, distributions


def of_profile(path: str) -> tuple[list[Curve], list[Curve]]:
    """The load of the smallest random reads in a profile, medians over repeats; it has no distributions."""
    profile = flashgrain.Profile.load(path)
    load: list[Curve] = []
    for experiment in ("parallel", "depth", "order"):
        if experiment not in profile.experiments:
            continue
        points = profile.measurements(experiment)
        size, streams = points["workload.request_bytes"], points["workload.concurrency"]
        wanted = (points["workload.read_share"] == 1) & (points["workload.random_share"] == 1)
        if not wanted.any():
            continue
        smallest = size[wanted].min()
        wanted &= size == smallest
        depths = np.unique(streams[wanted])
        bandwidths = points["bytes_per_second"]
        rate = np.array([np.median(bandwidths[wanted & (streams == depth)]) for depth in depths]) / smallest
        load.append((f"{experiment}, {smallest:g} bytes", rate, depths / rate * 1e6))
    return load, []


def main(drive: str, figure: str = "drive.png", requests: int = 20_000) -> None:
    load, distributions = of_profile(drive) if drive.endswith(".json") else of_simulated(drive, requests)
    for name, rates, latencies in load:
        for rate, latency in zip(rates, latencies):
            print(f"{name:22} {rate:12.0f} requests/s {latency:10.1f} us")
    try:
        import matplotlib
    except ImportError:
        print("for a figure: pip install matplotlib")
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter

    columns = 2 if distributions else 1
    _, axes = plt.subplots(1, columns, figsize=(5 * columns, 4), squeeze=False)
    left, right = axes[0][0], axes[0][-1]
    for name, rates, latencies in load:
        left.plot(rates, latencies, marker="o", label=name)
    left.set(xlabel="requests per second", ylabel="mean latency (µs)", xscale="log", yscale="log", title=drive)
    for axis in (left.xaxis, left.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(EngFormatter())
        axis.set_minor_formatter(NullFormatter())
    left.legend()
    for name, microseconds, share in distributions:
        right.plot(microseconds, share, drawstyle="steps-post", label=name)
    if distributions:
        right.set(xlabel="latency of a read (µs)", ylabel="share of requests", xscale="log")
        right.legend()
    plt.tight_layout()
    plt.savefig(figure, dpi=150)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "drive.png")
