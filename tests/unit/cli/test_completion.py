"""``sluiceway completion``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sluiceway.cli import common
from sluiceway.cli.main import main
from sluiceway.rest.client import RestError
from unit.cli.pretend_client import PretendClient


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_shell_code(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert "sluiceway" in capsys.readouterr().out


def test_a_shell_is_told_the_verbs_that_fit() -> None:
    script = (
        'eval "$(sluiceway completion bash)"; COMP_LINE="sluiceway re"; COMP_POINT=12; COMP_WORDS=(sluiceway re); COMP_CWORD=1; '
        '_python_argcomplete sluiceway; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, env={"PATH": path})
    assert {word.strip() for word in done.stdout.split()} == {"read", "rest", "restart", "resume"}, done


def test_connectors_names_are_completed_and_a_server_that_is_away_offers_none(api: PretendClient) -> None:
    import argparse

    api.answer_connectors = lambda: ["abc", "abd", "x"]  # type: ignore[attr-defined]
    assert list(common._complete_connector("ab", argparse.Namespace())) == ["abc", "abd"]
    api.failures = {"connectors": RestError(0, "away")}
    assert list(common._complete_connector("ab", argparse.Namespace())) == []
