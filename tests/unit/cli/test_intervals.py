"""``sluiceway intervals``."""

from __future__ import annotations

import json

import pytest

from sluiceway.cli import intervals
from sluiceway.cli.main import main
from unit.cli.pretend_client import INTERVALS, PretendClient, out

pytestmark = pytest.mark.usefixtures("in_utc")


def test_the_latest_interval_comes_first(api: PretendClient, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["intervals", "a"]) == 0
    lines = [line.split("  ") for line in out(capsys)]
    cells = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    assert cells[0] == ["START", "END", "STATE", "RECORDS", "LATE", "ATTEMPT", "RUN"]
    assert cells[1][2:] == ["failed: a mistake", "-", "-", "1", "r1"]
    assert cells[2][2:] == ["done, to be moved again", ">= 12", ">= 3", "2", "r2"]
    assert cells[3] == ["1970-01-01 00:00:00+00:00", "1970-01-01 01:00:00+00:00", "done", "12", "0", "1", "r1"]


def test_only_the_latest_are_shown_unless_all_are_asked_for(
    api: PretendClient, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intervals, "_SHOWN", 2)
    assert main(["intervals", "a", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"name": "a", "intervals": INTERVALS[:2]}
    assert main(["intervals", "a", "--all", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"name": "a", "intervals": INTERVALS}
