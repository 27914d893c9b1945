"""Simulated drives."""

from __future__ import annotations

import numpy as np
import pytest

import flashgrain
from flashgrain import Drive, errors


def test_a_load_in_virtual_time_repeats_exactly() -> None:
    def run() -> flashgrain.Run:
        return Drive("970evo", seed=3).run(requests=3000, concurrency=16, seed=5)

    one, other = run(), run()
    assert one.requests == 3000 and one.requests_per_second == other.requests_per_second
    np.testing.assert_array_equal(one.read_latency.microseconds, other.read_latency.microseconds)
    latencies = one.read_latency
    assert latencies.counts.sum() == 3000 and (np.diff(latencies.microseconds) > 0).all()
    assert latencies.cumulative_share()[-1] == 1.0
    assert latencies.percentiles["p50_us"] <= latencies.percentiles["p99_us"]
    assert len(one.write_latency.counts) == 0


def test_more_requests_in_flight_do_more() -> None:
    drive = Drive("970evo")
    alone, together = drive.run(requests=1000), drive.run(requests=4000, concurrency=32)
    assert together.requests_per_second > 8 * alone.requests_per_second
    mixed = drive.run(requests=1000, concurrency=8, read_share=0.5)
    assert mixed.write_latency.counts.sum() > 300
    assert drive.statistics()["counters"]["reads"] > 5000 and drive.statistics()["seconds"] > 0


def test_the_latency_of_each_request() -> None:
    drive = Drive("sim:905p")
    offsets = np.random.default_rng(1).integers(0, drive.capacity_bytes // 4096, 500) * 4096
    alone = drive.latencies_us(offsets)
    crowded = drive.latencies_us(offsets, in_flight=64)
    assert alone.shape == (500,) and np.isfinite(alone).all() and (alone > 0).all()
    assert np.median(crowded) > np.median(alone)
    writes = drive.latencies_us(offsets.reshape(50, 10), 8192, writes=True)
    assert writes.shape == (50, 10)


def test_latencies_of_one_at_a_time_agree_with_the_load_generator() -> None:
    offsets = np.random.default_rng(1).integers(0, Drive("905p").capacity_bytes // 4096, 2000) * 4096
    each = Drive("905p").latencies_us(offsets)
    load = Drive("905p").run(requests=2000)
    assert each.mean() == pytest.approx(load.read_latency.percentiles["mean_us"], rel=0.1)


def test_arguments_are_checked() -> None:
    assert "970evo" in flashgrain.drive_presets()
    with pytest.raises(errors.ArgumentError, match="970evo"):
        Drive("970ev")
    with pytest.raises(errors.ArgumentError, match="fresh"):
        Drive("970evo", state="old")  # type: ignore[arg-type]
    for state in (None, "fresh", "steady-random"):
        for working_set in (7.0, 0.0, -1.0, float("nan")):
            with pytest.raises(errors.ArgumentError, match="working_set"):
                Drive("970evo", state=state, working_set=working_set)
    with pytest.raises(errors.ArgumentError, match="null byte"):
        Drive("970evo\0")
    for seed in (-1, 1 << 64):
        with pytest.raises(errors.ArgumentError, match=f"seed is {seed}"):
            Drive("970evo", seed=seed)
    drive = Drive("970evo")
    for wrong in (
        lambda: drive.run(request_bytes=1000),
        lambda: drive.run(concurrency=0),
        lambda: drive.run(read_share=2.0),
        lambda: drive.run(rate_per_s=-1.0),
        lambda: drive.latencies_us([1]),
        lambda: drive.latencies_us([0.5]),
        lambda: drive.latencies_us([-4096]),
        lambda: drive.latencies_us([drive.capacity_bytes]),
        lambda: drive.latencies_us([0], 0),
        lambda: drive.latencies_us([0], 1 << 40),
        lambda: drive.latencies_us([0], in_flight=0),
        lambda: drive.latencies_us([0], in_flight=-1),
        lambda: drive.latencies_us([0], in_flight=1 << 40),
        lambda: drive.latencies_us([1 << 70]),
        lambda: drive.run(requests=0),
        lambda: drive.run(requests=-1),
        lambda: drive.run(requests=1 << 64),
        lambda: drive.run(seed=-1),
        lambda: drive.run(concurrency=10**400),
    ):
        with pytest.raises(errors.ArgumentError):
            wrong()
    assert "970" in drive.name and drive.sector_bytes in (512, 4096) and "970" in drive.to_toml()


def test_no_requests_have_no_latencies() -> None:
    drive = Drive("970evo")
    assert drive.latencies_us([]).shape == (0,) and drive.latencies_us([]).dtype == np.float64
    assert drive.latencies_us(np.zeros((3, 0), dtype=np.int64)).shape == (3, 0)


def test_runs_have_an_end_in_virtual_time() -> None:
    drive = Drive("970evo")
    for load in ({"requests": 10, "rate_per_s": 1e-9}, {"seconds": 1.0, "rate_per_s": 1e-9}, {"rate_per_s": 1e-3}):
        with pytest.raises(errors.ArgumentError, match="rate_per_s is .*use at least .* 1000000 virtual seconds"):
            drive.run(**load)  # type: ignore[arg-type]
    for seconds in (1e9, float("inf"), 10**400):
        with pytest.raises(errors.ArgumentError, match="seconds is .*at most 1000000 virtual seconds"):
            drive.run(seconds=seconds)
    assert drive.run(requests=5, rate_per_s=0.01).seconds > 50
