"""The tools beside `make test`: which tests `make check` chooses, and the table of `make proof`."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "tools")
    return importlib.import_module(request.param)


@pytest.mark.parametrize("tool", ["check"], indirect=True)
def test_changed_files_are_reached_by_tests_that_import_them_and_by_those_that_import_what_imports_them(tool: ModuleType) -> None:
    direct = {
        "plugin/sluiceway/herder/restart_plan.py": "tests/unit/herder/test_restart_plan.py",
        "plugin/sluiceway/data/instant.py": "tests/unit/data/test_instant.py",
        "plugin/sluiceway/transforms/cast.py": "tests/unit/transforms/test_cast.py",
        "operators/control.py": "tests/unit/operators/test_control.py",
        "tests/support/explain.py": "tests/unit/faults/test_explain.py",
    }
    itself = "tests/unit/java/test_numbers.py"
    assert all((ROOT / name).exists() for name in (*direct, *direct.values(), itself))
    reached = tool.reaching([*direct, itself])
    assert {reached.get(name) for name in direct.values()} == {1}, reached
    assert reached[itself] == 0
    assert list(reached.values()) == sorted(reached.values())
    assert sum(steps > 1 for steps in reached.values()) > 100
    assert tool.reaching(["README.md", "docker/helm/Chart.yaml"]) == {}


@pytest.mark.parametrize("tool", ["check"], indirect=True)
def test_tests_are_chosen_until_the_time_is_used_up(tool: ModuleType) -> None:
    assert tool.within(10, ["a", "b", "c", "d"], {"a": 4, "b": 5.5, "c": 4}) == (["a", "b"], ["c", "d"])
    assert tool.within(10, ["a", "b"], {"a": 40}) == (["a"], ["b"]), "one at least"
    assert tool.within(10, [], {}) == ([], [])


@pytest.mark.parametrize("tool", ["proof"], indirect=True)
def test_a_target_has_one_row_with_its_newest_result(tool: ModuleType) -> None:
    table = tool.with_row(tool.TABLE.read_text(), "bench", "day | a1 | 9 | ok")
    table = tool.with_row(table, "faults", "day | a1 | 3 | 5 passed")
    again = tool.with_row(table, "faults", "later | b2 | 4 | 6 passed")
    assert again.count("| faults |") == 1
    assert "| faults | later | b2 | 4 | 6 passed |\n" in again
    assert again.endswith("| bench | day | a1 | 9 | ok |\n"), "in the order of the targets"
    assert tool.with_row(again, "faults", "later | b2 | 4 | 6 passed") == again


@pytest.mark.parametrize("tool", ["proof"], indirect=True)
@pytest.mark.parametrize(
    ("output", "code", "summary"),
    [
        ("...\n==== 5 passed, 2 skipped in 61.20s (0:01:01) ====\nx\n", 0, "5 passed, 2 skipped in 61.20s (0:01:01)"),
        (
            "8 passed in 3.10s\n1 failed, 2 passed in 4s\nmake: *** [x] Error 1",
            2,
            "FAILED: 8 passed in 3.10s; 1 failed, 2 passed in 4s",
        ),
        ("ratio 2.1\n\n", 0, "ratio 2.1"),
        ("", 1, "FAILED: no output"),
    ],
)
def test_a_result_is_what_pytest_or_the_target_says_last(tool: ModuleType, output: str, code: int, summary: str) -> None:
    assert tool.summary(output, code) == summary


@pytest.mark.parametrize("tool", ["proof"], indirect=True)
def test_each_target_exists(tool: ModuleType) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert [name for name in tool.TARGETS if f"\n{name}:" not in makefile] == []


@pytest.mark.parametrize("tool", ["follow_page"], indirect=True)
def test_the_page_has_the_texts_that_are_replaced_when_it_is_followed(tool: ModuleType, tmp_path: Path) -> None:
    page = (ROOT / "docs" / tool.PAGE).read_text(encoding="utf-8")
    ports, _ = tool._beside_others(tmp_path)
    marks = (tool._VENV, tool._COPY, tool._INSTALL, tool._SERVER, tool._SECOND_TERMINAL, tool._BEFORE_THE_END)
    assert [each for each in (*marks, *ports) if each not in page] == []
