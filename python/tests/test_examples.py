"""The examples, in small."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_fio_data_are_fitted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def job(size: str, size_bytes: int, depth: int) -> dict[str, object]:
        rate = min(depth, 8) * size_bytes / (1e-4 + size_bytes / 1e9)
        return {
            "job options": {"bs": size, "iodepth": str(depth), "rw": "randread"},
            "read": {"bw_bytes": rate},
            "write": {"bw_bytes": 0},
        }

    sizes = (("4k", 4096), ("16k", 16384), ("64KiB", 65536), ("256k", 1 << 18), ("1M", 1 << 20))
    report = {"jobs": [job(*size, depth) for size in sizes for depth in (1, 2, 4, 8, 16, 32)]}
    (tmp_path / "run.json").write_text(json.dumps(report))
    fit_fio = example("fit_fio")
    fit_fio.main([str(tmp_path / "run.json")])
    printed = capsys.readouterr().out
    assert "best first: mqssd" in printed and "16 KiB random reads" in printed
    (tmp_path / "few.json").write_text(json.dumps({"jobs": report["jobs"][:3]}))
    fit_fio.main([str(tmp_path / "few.json")])
    assert "no comparison: too few" in capsys.readouterr().out


def test_a_drive_is_plotted(tmp_path: Path, profile_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plot = example("plot_drive")
    plot.main("970evo", str(tmp_path / "drive.png"), requests=300)
    plot.main(str(profile_path), str(tmp_path / "profile.png"))
    printed = capsys.readouterr().out
    assert "half reads" in printed and "parallel" in printed
    if "matplotlib" in sys.modules:
        assert (tmp_path / "drive.png").stat().st_size > 10_000


def test_words_are_counted_again_after_an_opening(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "text.txt"
    text.write_text("apple pear apple\n" * 1000 + "quince\n")
    words = example("larger_than_memory")
    for total in (3001, 6002):
        words.main(str(tmp_path / "store"), [str(text)], cache_bytes=16 << 20)
        assert f"{total} words, 3 different ones; the most frequent: apple" in capsys.readouterr().out
    words.main(str(tmp_path / "made-up"), [], made_up=30_000, cache_bytes=16 << 20)
    assert "30000 words" in capsys.readouterr().out
