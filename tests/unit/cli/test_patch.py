"""``sluiceway patch``."""

from __future__ import annotations

import pytest

from sluiceway.cli.main import main
from unit.cli.pretend_client import PretendClient, out


def test_patch_shows_and_sends_only_what_changes(api: PretendClient, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["patch", "connector", "a", "-s", "topic=x=y", "--remove", "file"]) == 0
    assert api.calls == [("patch_config", "a", {"topic": "x=y", "file": None})]
    assert out(capsys) == ["~ a", "  - file: /f", "  - topic: t", "  + topic: x=y", "Connector a configured"]
    assert main(["patch", "a", "--set", "topic=z", "--dry-run"]) == 0
    assert main(["patch", "a", "--set", "topic=t"]) == 0
    assert len(api.calls) == 1
    assert main(["patch", "a"]) == 1


def test_a_key_to_remove_that_is_not_set_is_named(api: PretendClient, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["patch", "a", "--remove", "topci", "--remove", "zzz"]) == 0
    assert api.calls == []
    assert out(capsys) == ["a does not set topci. Did you mean topic?", "a does not set zzz.", "Connector a unchanged"]
