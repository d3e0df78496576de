"""The documentation against the code: its examples run, and its generated pages have what they must."""

from __future__ import annotations

import importlib
import logging
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
EXAMPLES = "docs/how-to/write-connectors.md"
_EXAMPLE = re.compile(r"```python\n# (\w+\.py)\n(.*?)```", re.DOTALL)


def test_the_examples_of_connectors_keep_their_contracts(tmp_path: Path) -> None:
    examples = _EXAMPLE.findall((ROOT / EXAMPLES).read_text(encoding="utf-8"))
    for name, text in examples:
        (tmp_path / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(tmp_path)]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout
    tests = [name for name, _ in examples if name.startswith("test_")]
    assert len(tests) == 7
    assert int(re.findall(r"(\d+) passed", run.stdout)[0]) > 50


def test_continuous_dags_of_the_pages_have_a_start_date() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    dags = [(page.name, each) for page in pages for each in re.findall(r"\bDAG\([^:]*?\):", page.read_text(encoding="utf-8"))]
    continuous = [(page, each) for page, each in dags if "@continuous" in each]
    assert {"README.md", "your-own-airflow.md"} <= {page for page, _ in continuous}
    assert [page for page, each in continuous if "start_date" not in each] == [], "before 3.2, Airflow never runs such a DAG"


@pytest.fixture
def make_docs(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "tools")
    return importlib.import_module("make_docs")


def test_each_plugin_is_in_the_reference_pages(make_docs: ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        make_docs.pages()
    assert not [record.getMessage() for record in caplog.records if "not usable" in record.getMessage()]


def test_a_page_has_each_plugin_with_its_options(make_docs: ModuleType) -> None:
    page: str = make_docs.pages()["transforms.md"]
    section = page.split("## HoistField\n")[1].split("\n## ")[0]
    assert (
        "| `org.apache.kafka.connect.transforms.HoistField$Key` | `sluiceway.transforms.hoist_field.HoistFieldKey` |" in section
    )
    assert "| `field` | string | *required* | " in section


def test_the_command_line_page_has_each_command_with_its_arguments(make_docs: ModuleType) -> None:
    page: str = make_docs.pages()["cli.md"]
    section = page.split("## sluiceway restart\n")[1].split("\n## ")[0]
    assert "| `--only-failed` |  | restart only failed connectors and tasks |" in section
    assert "--server" not in section


def test_the_python_page_has_signatures_and_arguments(make_docs: ModuleType) -> None:
    page: str = make_docs.pages()["operators.md"]
    section = page.split("### ConnectorLagSensor\n")[1].split("\n### ")[0]
    assert "ConnectorLagSensor(*, connector: str, at_most: int | str = 0, **kwargs: Any)" in section
    assert "* `at_most`: " in section


def test_a_page_that_loads_from_another_host_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("material", reason="needs the extra 'docs'")
    monkeypatch.syspath_prepend(ROOT / "tools")
    hooks = importlib.import_module("docs_hooks")
    page, style = tmp_path / "page.html", tmp_path / "style.css"
    page.write_text(
        '<a href="https://a.example/read">a</a><script src="https://b.example/run.js"></script><link href="//c.example/s">'
    )
    style.write_text("@import 'https://d.example/s.css'; a { background: url(local.svg) }")
    assert hooks._external(page) == ["https://b.example/run.js", "//c.example/s"]
    assert hooks._external(style) == ["https://d.example/s.css"]


def test_each_cell_of_a_table_names_its_column(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("material", reason="needs the extra 'docs'")
    monkeypatch.syspath_prepend(ROOT / "tools")
    hooks: Any = importlib.import_module("docs_hooks")
    table = (
        '<table><thead><tr><th>Key</th><th style="x">A &amp; "<code>B</code>"</th><th></th></tr></thead>'
        "<tbody><tr><td>a</td><td style='x'>b</td><td>c</td></tr><tr><td>d</td><td>e</td><td>f</td></tr></tbody></table>"
    )
    made = hooks.on_page_content(f"<td>{table}", page=None, config=None, files=None)
    named = ['<td data-column="Key">', '<td data-column="A &amp; &quot;B&quot;"', '<td data-column="">']
    assert [made.count(each) for each in named] == [2, 2, 2]
    assert made.startswith("<td><table>")


def test_a_short_value_in_a_table_stays_on_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("material", reason="needs the extra 'docs'")
    monkeypatch.syspath_prepend(ROOT / "tools")
    hooks: Any = importlib.import_module("docs_hooks")
    values = ["26214400", "lag:&lt;n&gt;", "io.debezium.schema.DefaultTopicNamingStrategy"]
    row = "".join(f"<td><code>{each}</code></td>" for each in values)
    made = hooks.on_page_content(f"<table><tr>{row}</tr></table>", page=None, config=None, files=None)
    assert [f'<code class="short">{each}</code>' in made for each in values] == [True, True, False]


def test_a_check_reports_stale_pages(
    make_docs: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(make_docs, "REFERENCE", tmp_path)
    assert make_docs.main(["--check"]) == 1
    assert "transforms.md" in capsys.readouterr().err
    assert make_docs.main([]) == 0
    assert make_docs.main(["--check"]) == 0
    (tmp_path / "predicates.md").write_text("stale")
    assert make_docs.main(["--check"]) == 1
    (tmp_path / "left.md").write_text("<!-- Generated by `make docs` from the code -->")
    assert make_docs.main(["--check"]) == 1
    assert capsys.readouterr().err.endswith("docs/reference: predicates.md, left.md. Run `make docs`; delete what is left.\n")


def test_the_generated_pages_leave_no_file_in_the_temporary_folder(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "AIRFLOW_HOME"} | {"TMPDIR": str(tmp_path)}
    code = "import docs_python; print(len(list(docs_python.operator_sections())))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT / "tools", env=environment, capture_output=True, text=True, check=True)
    assert int(done.stdout.splitlines()[-1]) > 10
    assert list(tmp_path.iterdir()) == []
