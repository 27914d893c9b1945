"""Samples, fits, predictions, comparisons."""

from __future__ import annotations

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
    with pytest.raises(errors.ArgumentError, match="repeat"):
        Samples([4096], [1], [1e8], repeat=0.5)
    with pytest.raises(errors.ArgumentError):
        Samples([], [], []).fit()
    with pytest.raises(FileNotFoundError):
        Samples.read_csv(tmp_path / "nothing.csv")
    (tmp_path / "wrong.csv").write_text("a,b\n1,2\n")
    with pytest.raises(errors.ArgumentError, match="request_bytes"):
        Samples.read_csv(tmp_path / "wrong.csv")


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
    with pytest.raises(errors.ProfileError, match="nothing.json"):
        flashgrain.Profile.load(tmp_path / "nothing.json")


def test_a_profile_decides_a_layout(profile_path: Path) -> None:
    profile = flashgrain.Profile.load(profile_path)
    for given in (profile, profile_path):
        with flashgrain.Store.in_memory(profile=given) as store:
            assert store.layout()
    with pytest.raises(TypeError):
        flashgrain.Store.in_memory(profile=3)  # type: ignore[arg-type]
