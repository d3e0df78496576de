"""``sluiceway apply`` and ``diff``."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluiceway.cli.main import main
from unit.cli.pretend_client import CONFIG, PretendClient, out, write


def test_apply_shows_what_changes_before_it_does_it_and_does_nothing_twice(
    api: PretendClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed, new = CONFIG | {"topic": "u"}, {"name": "b", "connector.class": "C"}
    assert main(["apply", "-f", write(tmp_path / "f.json", changed, new)]) == 0
    assert out(capsys) == [
        "~ a",
        "  - topic: t",
        "  + topic: u",
        "+ b",
        "  + connector.class: C",
        "  + name: b",
        "Connector a configured",
        "Connector b created",
    ]
    assert api.calls == [("put_config", "a", changed), ("put_config", "b", new)]
    api.calls.clear()
    assert main(["apply", "-f", write(tmp_path / "g.json", CONFIG)]) == 0
    assert (out(capsys), api.calls) == (["Connector a unchanged"], [])


def test_a_dry_run_checks_and_changes_nothing(api: PretendClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "f.json", {"name": "b", "connector.class": "C"})
    assert main(["apply", "-f", file, "--dry-run"]) == 0
    assert out(capsys)[-2:] == ["b: valid", "Dry run: 1 to create"]
    api.errors = ["too short"]
    assert main(["apply", "-f", file, "--dry-run"]) == 3
    assert "           too short" in out(capsys)
    assert api.calls == []


def test_prune_deletes_what_is_in_no_file(api: PretendClient, tmp_path: Path) -> None:
    file = write(tmp_path / "f.json", {"name": "b", "connector.class": "C"})
    assert main(["apply", "-f", file]) == 0
    assert main(["apply", "-f", file, "--prune"]) == 0
    assert [call[:2] for call in api.calls] == [("put_config", "b"), ("put_config", "b"), ("delete", "a")]


def test_a_new_connectors_initial_state_is_asked_for(api: PretendClient, tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_text("name: b\ninitial_state: PAUSED\nconfig: {connector.class: C}\n")
    assert main(["apply", "-f", str(file)]) == 0
    assert api.calls == [("create", "b", {"connector.class": "C", "name": "b"}, "PAUSED")]


def test_diff_tells_a_script_whether_anything_would_change(
    api: PretendClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", "-f", write(tmp_path / "f.json", CONFIG)]) == 0
    assert main(["diff", "-f", write(tmp_path / "g.json", CONFIG | {"db.password": "hunter3"})]) == 8
    assert out(capsys) == ["~ a", "  - db.password: [hidden]", "  + db.password: [hidden]"]
    assert api.calls == []
