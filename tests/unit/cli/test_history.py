"""``sluiceway history`` and ``sluiceway rollback``."""

from __future__ import annotations

import json

import pytest

from sluiceway import exit_codes
from sluiceway.cli.main import main
from sluiceway.rest.client import RestError
from unit.cli.pretend_client import HISTORY, PretendClient, out

pytestmark = pytest.mark.usefixtures("in_utc")


def test_the_newest_change_comes_first(api: PretendClient, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "a"]) == 0
    lines = out(capsys)
    assert lines[0].split() == ["VERSION", "TIME", "USER", "FROM", "CHANGE"]
    assert [line.split("  ")[0].strip() for line in lines[1:]] == ["5", "4", "3", "2", "1"]
    assert lines[1].endswith("10.0.0.7, curl/8, by mistake  deleted")
    assert lines[2].endswith("offsets of 2 partitions")
    assert lines[3].endswith("state: STARTED -> STOPPED")
    assert lines[4].endswith("config: file, old")
    assert lines[5].startswith("1        1970-01-01 00:00:00+00:00  bob")


@pytest.mark.parametrize(
    ("version", "lines"),
    [
        (2, ["version 2: config", "user -, from", "  - file: /e", "  + file: /f", "  - old: 1"]),
        (3, ["version 3: state", "user bob (not authenticated), from", "  - state: STARTED", "  + state: STOPPED"]),
        (4, ["version 4: offsets", "user bob, from", "  + filename=/f: position=7", "  (2 partitions in all)"]),
        (5, ["version 5: deleted", "user bob"]),
    ],
)
def test_one_change_is_shown_in_detail(
    api: PretendClient, capsys: pytest.CaptureFixture[str], version: int, lines: list[str]
) -> None:
    assert main(["history", "a", "--version", str(version)]) == 0
    printed = out(capsys)
    assert (printed[0], printed[2:]) == (lines[0], lines[2:])
    assert lines[1] in printed[1]


def test_programs_get_json(api: PretendClient, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "a", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"name": "a", "history": HISTORY}
    assert main(["history", "a", "--version", "2", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == HISTORY[1]


def test_an_unknown_version_is_an_error(api: PretendClient, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "a", "--version", "9"]) == exit_codes.NOT_FOUND
    assert "has no version 9" in capsys.readouterr().err
    assert main(["rollback", "a", "--to", "9"]) == exit_codes.NOT_FOUND
    assert main(["rollback", "a", "--to", "5"]) == 1
    assert "has no config in version 5" in capsys.readouterr().err


def test_a_rollback_shows_its_changes_without_secrets(api: PretendClient, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rollback", "a", "--to", "1", "--dry-run"]) == 0
    assert (out(capsys), api.calls) == (["~ a", "  - file: /f", "  + file: /e", "Connector a unchanged"], [])
    assert main(["rollback", "a", "--to", "1"]) == 0
    assert (out(capsys)[-1], api.calls) == ("Connector a configured", [("roll_back", "a", 1)])
    assert main(["rollback", "a", "--to", "2"]) == 0  # what runs
    assert (out(capsys), len(api.calls)) == (["Connector a unchanged"], 1)


def test_a_deleted_connector_is_restored(api: PretendClient, capsys: pytest.CaptureFixture[str]) -> None:
    api.failures["config"] = RestError(404, "Connector a not found")
    assert main(["rollback", "a", "--to", "4"]) == 0
    assert api.calls == [("roll_back", "a", 4)]
    api.failures["config"] = RestError(500, "broken")
    assert main(["rollback", "a", "--to", "4"]) == 1
