"""Samples, fits, predictions, comparisons."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import flashgrain
from flashgrain import Samples, errors


def test_fits_find_the_costs_of_the_drive(samples: Samples) -> None:
    models = samples.fit(resamples=40)
    assert models.names == ["dam", "pdam", "affine", "mqssd"] and "mqssd" in models and "disk" not in models
    sizes = np.array([4096.0, 65536.0, 1 << 20])
    predicted = models.predict("mqssd", sizes[:, None], np.array([1.0, 8.0]))
    expected = np.array([1.0, 8.0]) * (sizes / (1e-4 + sizes / 1e9))[:, None]
    assert predicted.shape == (3, 2)
    # The model's curves are smooth where this drive has a corner.
    np.testing.assert_allclose(predicted, expected, rtol=0.15)
    assert np.isnan(models.predict("mqssd", 4096, 1, read_share=0.0)).all()
    setup = [one for one in models.parameters("affine") if one.access == "read"]
    assert setup and all(one.model == "affine" and one.unit is not None for one in setup)
    determined = [one.estimate for one in models.parameters("mqssd") if one.estimate.is_determined]
    assert determined and all(one.low <= one.value <= one.high for one in determined)
    with pytest.raises(errors.ArgumentError, match="dam, pdam"):
        models.predict("disk", 4096)  # type: ignore[arg-type]


def test_comparisons_rank_models(samples: Samples) -> None:
    comparison = samples.compare(resamples=20)
    assert comparison.ranking[0] == "mqssd", comparison.ranking_reason
    errors_of = comparison.errors()
    worst = dict(zip(errors_of["model"], errors_of["median_relative_error"]))
    assert worst["mqssd"] < 0.05 < worst["dam"]
    points = comparison.points()
    assert len(points["bytes_per_second"]) == 30
    np.testing.assert_allclose(points["predicted.mqssd"], points["bytes_per_second"], rtol=0.15)
    assert comparison.noise_floor()["median_relative_error"][0] < 0.03


def test_samples_go_through_a_file(samples: Samples, tmp_path: Path) -> None:
    samples.write_csv(tmp_path / "samples.csv")
    again = Samples.read_csv(tmp_path / "samples.csv")
    assert len(again) == len(samples) == 90
    for name, column in samples.columns().items():
        np.testing.assert_array_equal(again.columns()[name], column)
    assert samples.columns()["bytes_per_second"].dtype == np.float64


def test_samples_that_make_no_sense_are_named(tmp_path: Path) -> None:
    with pytest.raises(errors.ArgumentError, match="row 1: bytes_per_second"):
        Samples([4096, 4096], [1, 1], [1e8, -1.0])
    with pytest.raises(errors.ArgumentError, match="read_share"):
        Samples([4096], [1], [1e8], read_share=2.0)
    with pytest.raises(errors.ArgumentError, match="lengths"):
        Samples([4096, 8192], [1, 1], [1e8, 1e8], experiment=["a"])
    with pytest.raises(ValueError):
        Samples([4096, 8192], [1, 1, 1], [1e8, 1e8])
    for repeat in (0.5, -1, float("nan"), float("inf"), 1e20, 1 << 32):
        with pytest.raises(errors.ArgumentError, match="row 1: repeat"):
            Samples([4096, 4096], [1, 1], [1e8, 1e8], repeat=[0, repeat])
    with pytest.raises(errors.ArgumentError, match="too large"):
        Samples([10**400], [1], [1e8])
    # Names that a file would not give back.
    for name in ("", " a", "a\n", "#a"):
        with pytest.raises(errors.ArgumentError, match="row 0: experiment"):
            Samples([4096], [1], [1e8], experiment=name)
    with pytest.raises(errors.ArgumentError):
        Samples([], [], []).fit()
    (tmp_path / "wrong.csv").write_text("a,b\n1,2\n")
    with pytest.raises(errors.ArgumentError, match="wrong.csv: .*request_bytes"):
        Samples.read_csv(tmp_path / "wrong.csv")


def test_files_that_cannot_be_used_are_named(samples: Samples, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nothing.csv") as missing:
        Samples.read_csv(tmp_path / "nothing.csv")
    assert missing.value.errno == errno.ENOENT and str(missing.value.filename) == str(tmp_path / "nothing.csv")
    with pytest.raises(IsADirectoryError, match=str(tmp_path)):
        Samples.read_csv(tmp_path)
    with pytest.raises(IsADirectoryError, match=str(tmp_path)):
        samples.write_csv(tmp_path)
    for use in (Samples.read_csv, samples.write_csv, flashgrain.Profile.load, flashgrain.Store.open):
        with pytest.raises(errors.ArgumentError, match="null byte"):
            use("a\0b")


def test_fits_of_options_that_cannot_be_are_refused(samples: Samples) -> None:
    for page_bytes in (0.0, -1.0, float("nan"), float("inf"), 10**400):
        for work in (samples.fit, samples.compare):
            with pytest.raises(errors.ArgumentError, match="page_bytes"):
                work(page_bytes=page_bytes)
    for name in ("resamples", "seed"):
        for wrong in (-1, 1 << 64):
            with pytest.raises(errors.ArgumentError, match=f"{name} is {wrong}"):
                samples.fit(**{name: wrong})


def test_workloads_that_cannot_be_have_no_prediction(samples: Samples) -> None:
    models = samples.fit(resamples=2)
    for size, streams, shares in (
        (-4096, 1, {}),
        (0, 1, {}),
        (4096, -1, {}),
        (4096, float("inf"), {}),
        (float("nan"), 1, {}),
        (4096, 1, {"read_share": 1.5}),
        (4096, 1, {"read_share": float("nan")}),
        (4096, 1, {"random_share": -0.5}),
    ):
        with pytest.raises(errors.ArgumentError, match="point 1"):
            models.predict("mqssd", [4096, size], [1, streams], **{name: [1, share] for name, share in shares.items()})


def test_a_profile_as_arrays(profile_path: Path) -> None:
    profile = flashgrain.Profile.load(profile_path)
    assert profile.drive and profile.models is not None and "mqssd" in profile.models
    assert profile.experiments == ["parallel", "size", "mix", "flush", "location"]
    mix = profile.measurements("mix")
    assert mix["workload.request_bytes"].dtype == np.float64 and (mix["bytes_per_second"] > 0).all()
    assert len(mix["read_latency.p50_us"]) == 16 and np.isnan(mix["read_latency.p50_us"]).any()
    for not_run in ("order", "nothing"):
        with pytest.raises(KeyError, match="parallel"):
            profile.measurements(not_run)
    assert profile.headline()["random_reads_per_second"] > 0
    assert "parallelism" in profile.learned()
    assert len(profile.decisions()["setting"]) == len(profile.to_dict()["decisions"])
    assert len(profile.samples()) > 10
    assert profile.comparison is None or profile.comparison.ranking is not None
    assert flashgrain.Profile.parse(profile_path.read_bytes()).to_dict() == profile.to_dict()


def test_files_that_are_no_profiles_are_refused(tmp_path: Path) -> None:
    for content in (b"", b"{}", b"\xff", b"[1, 2"):
        with pytest.raises(errors.ProfileError):
            flashgrain.Profile.parse(content)
    with pytest.raises(errors.ProfileError, match="^the given content: is not"):
        flashgrain.Profile.parse(b"{}")
    with pytest.raises(TypeError, match="profile is bytes, not str"):
        flashgrain.Profile.parse("{}")  # type: ignore[arg-type]
    with pytest.raises(errors.ProfileError, match="nothing.json"):
        flashgrain.Profile.load(tmp_path / "nothing.json")


def test_a_profile_decides_a_layout(profile_path: Path) -> None:
    profile = flashgrain.Profile.load(profile_path)
    for given in (profile, profile_path):
        with flashgrain.Store.in_memory(profile=given) as store:
            assert store.layout()
    with pytest.raises(TypeError):
        flashgrain.Store.in_memory(profile=3)  # type: ignore[arg-type]


def test_a_signal_ends_a_long_computation() -> None:
    # In a process of its own, which ends the computations with it.
    program = """
import signal
import flashgrain
def interrupt(*_):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, interrupt)
sizes = [4096 << (2 * row) for row in range(5) for _ in range(6)]
streams = [1 << column for _ in range(5) for column in range(6)]
samples = flashgrain.Samples(sizes, streams, [min(n, 8) * b / (1e-4 + b / 1e9) for b, n in zip(sizes, streams)])
drive = flashgrain.Drive("970evo")
for work in (
    lambda: samples.fit(resamples=1_000_000),
    lambda: samples.compare(resamples=1_000_000),
    lambda: drive.run(seconds=1e6),
):
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        work()
    except KeyboardInterrupt:
        print("ended")
assert drive.run(requests=10).requests == 10
"""
    ran = subprocess.run([sys.executable, "-c", program], check=True, timeout=60, capture_output=True, text=True)
    assert ran.stdout == "ended\n" * 3
