"""A spark-submit that cannot be started."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluiceway.provider.compat import AirflowFailException
from sluiceway.provider.driver.submit_process import SubmitProcess


def _lines(_line: str) -> None:
    """Take a line of the output."""


@pytest.mark.parametrize("found", ["nothing", "no program", "a folder"])
def test_a_program_that_is_not_there_fails_at_once_with_what_to_do(tmp_path: Path, found: str) -> None:
    program = tmp_path / "spark-submit"
    if found == "no program":
        program.write_text("text")
    elif found == "a folder":
        program.mkdir()
    with pytest.raises(AirflowFailException, match="pip install pyspark") as raised:
        SubmitProcess([str(program), "--version"], {}, _lines)
    assert str(raised.value).startswith(f"Cannot start {program}: ")
