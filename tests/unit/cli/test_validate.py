"""``sluiceway validate``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sluiceway.cli.main import main
from unit.cli.pretend_client import CONFIG, PretendClient, out, write


@pytest.mark.parametrize(("errors", "code"), [([], 0), (["bad"], 3)])
def test_validate_answers_with_its_findings(
    api: PretendClient, tmp_path: Path, capsys: pytest.CaptureFixture[str], errors: list[str], code: int
) -> None:
    api.errors = errors
    file = write(tmp_path / "f.json", CONFIG)
    assert main(["validate", "-f", file]) == code
    assert out(capsys)[0] == ("a: 1 error(s), 0 warning(s)" if errors else "a: valid")
    assert main(["validate", "-f", file, "-o", "json"]) == code
    assert [each["message"] for each in json.loads(capsys.readouterr().out)[0]["errors"]] == errors


def test_validate_and_apply_say_which_of_two_classes_is_used(
    api: PretendClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "f.json", {**CONFIG, "name": "new"})
    for command in ("validate", "apply"):
        api.note = None
        assert main([command, "-f", file]) == 0
        assert "note" not in capsys.readouterr().out
        api.note = "x.Y is Sluiceway's class in Python here."
        assert main([command, "-f", file]) == 0
        assert "  note     x.Y is Sluiceway's class in Python here." in out(capsys)
    assert main(["validate", "-f", file, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["note"] == api.note
