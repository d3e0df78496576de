"""The examples in docs/writing-connectors.md run, and docs/reference is what `make docs` writes."""

from __future__ import annotations

import importlib.util
import logging
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]
_EXAMPLE = re.compile(r"```python\n# (\w+\.py)\n(.*?)```", re.DOTALL)


def test_the_examples_of_connectors_keep_their_contracts(tmp_path: Path) -> None:
    examples = _EXAMPLE.findall((ROOT / "docs/writing-connectors.md").read_text(encoding="utf-8"))
    for name, text in examples:
        (tmp_path / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(tmp_path)]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout
    tests = [name for name, _ in examples if name.startswith("test_")]
    assert len(tests) == 4
    assert int(re.findall(r"(\d+) passed", run.stdout)[0]) > 50


@pytest.fixture
def make_docs() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_docs", ROOT / "tools/make_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_pages_are_up_to_date(make_docs: ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        pages: dict[str, str] = make_docs.pages()
    assert not [record.getMessage() for record in caplog.records if "not usable" in record.getMessage()]
    for name, text in pages.items():
        committed = (ROOT / "docs/reference" / name).read_text(encoding="utf-8")
        assert committed == text, f"docs/reference/{name} is not up to date: run `make docs`"
    assert {path.name for path in (ROOT / "docs/reference").glob("*.md")} == set(pages)


def test_a_page_has_each_plugin_with_its_options(make_docs: ModuleType) -> None:
    page: str = make_docs.pages()["transforms.md"]
    section = page.split("## HoistField\n")[1].split("\n## ")[0]
    assert (
        "| `org.apache.kafka.connect.transforms.HoistField$Key` | `sluiceway.transforms.hoist_field.HoistFieldKey` |" in section
    )
    assert "| `field` | string | *required* | medium | " in section


def test_a_check_tells_stale_pages(make_docs: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_docs.REFERENCE = tmp_path
    assert make_docs.main(["--check"]) == 1
    assert "transforms.md" in capsys.readouterr().err
    assert make_docs.main([]) == 0
    assert make_docs.main(["--check"]) == 0
    (tmp_path / "predicates.md").write_text("stale")
    assert make_docs.main(["--check"]) == 1
    assert capsys.readouterr().err == "Not up to date in docs/reference: predicates.md. Run `make docs`.\n"
