"""``sluiceway offsets``."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluiceway.cli.main import main
from unit.cli.pretend_client import OFFSETS, PretendClient, out


def test_offsets_can_be_put_back_from_what_was_shown(
    api: PretendClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["offsets", "get", "a", "-o", "json"]) == 0
    (tmp_path / "o.json").write_text(capsys.readouterr().out)
    assert main(["offsets", "set", "a", "-f", str(tmp_path / "o.json")]) == 0
    assert api.calls == [("alter_offsets", "a", OFFSETS)]


def test_a_sinks_offsets_are_shown_as_they_can_be_set(api: PretendClient, capsys: pytest.CaptureFixture[str]) -> None:
    sinks = [{"partition": {"kafka_partition": 2, "kafka_topic": "t"}, "offset": {"kafka_offset": 9}}]
    api.answer_offsets = lambda _name: sinks  # type: ignore[method-assign]
    assert main(["offsets", "get", "a"]) == 0
    assert [line.split() for line in out(capsys)] == [["PARTITION", "OFFSET"], ["t:2", "9"]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a"], "Name a partition and its offset"),
        (["a", "{", "1"], "Cannot parse the partition"),
        (["a", "t:0", "x"], "Cannot parse the offset"),
        (["a", "-f", "/no/such/file"], "No such file"),
    ],
)
def test_offsets_that_cannot_be_read_are_refused(
    api: PretendClient, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["offsets", "set", *arguments]) == 1
    assert message in capsys.readouterr().err
    assert api.calls == []
