"""Answers of studies as arrays."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from flashgrain import StudyAnswer, errors, load_studies

ANSWER = {
    "flashgrain_version": "0.1.0",
    "arguments": ["--seed=7"],
    "seconds": 1.5,
    "comparisons": [
        {
            "source": "Table 3",
            "name": "gain",
            "measure": "factor",
            "papers": 2.0,
            "ours": {"value": 1.9, "low": 1.8, "high": 2.0},
            "apart": None,
        },
        {"source": "Table 4", "name": "rate", "measure": "per_second", "papers": 5.0, "ours": None, "apart": "other"},
    ],
    "result": {"drive": "x", "levels": [{"bytes": 1, "cost": {"us": 2.5}}, {"bytes": 2, "cost": None, "deep": [{"a": 1}]}]},
}


def test_answers_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "node-size-seed-7.json").write_text(json.dumps(ANSWER))
    (tmp_path / "page.html").write_text("<html>")
    (only,) = load_studies(tmp_path)
    assert only.name == "node-size-seed-7" and only.seed == 7 and only.arguments == ["--seed=7"]
    comparisons = only.comparisons()
    np.testing.assert_array_equal(comparisons["papers"], [2.0, 5.0])
    np.testing.assert_array_equal(comparisons["ours.value"], [1.9, np.nan])
    assert list(comparisons["apart"]) == ["", "other"]
    tables = only.tables()
    assert set(tables) == {"levels", "levels.1.deep"}
    np.testing.assert_array_equal(tables["levels"]["bytes"], [1.0, 2.0])
    np.testing.assert_array_equal(tables["levels"]["cost.us"], [2.5, np.nan])


def test_other_files_are_refused(tmp_path: Path) -> None:
    for number, text in enumerate(("{", "[]", "{}", '{"arguments": []}')):
        path = tmp_path / f"x-seed-{number}.json"
        path.write_text(text)
        with pytest.raises(errors.ArgumentError, match="x-seed"):
            StudyAnswer.load(path)
