"""The code blocks of the guide and of the package's page, in order, each page in a namespace of its own."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

PYTHON = Path(__file__).parents[1]


@pytest.mark.parametrize("page", [PYTHON.parent / "docs/python.md", PYTHON / "README.md"], ids=lambda page: page.name)
def test_the_code_of_a_page_runs(
    page: Path, tmp_path: Path, profile_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(profile_path, tmp_path / "profile.json")
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    assert blocks
    namespace: dict[str, object] = {}
    for number, block in enumerate(blocks):
        exec(compile(block, f"{page.name}, block {number}", "exec"), namespace)
