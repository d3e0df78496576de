"""``sluiceway offsets``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sluiceway.cli.main import main
from unit.cli.pretend_client import FOUND, OFFSETS, PretendClient, out


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


@pytest.mark.parametrize("stored", [True, False])
def test_a_position_that_is_elsewhere_is_told(api: PretendClient, capsys: pytest.CaptureFixture[str], stored: bool) -> None:
    api.position = "The queue has it."
    api.answer_offsets = lambda _name: OFFSETS if stored else []  # type: ignore[method-assign]
    assert main(["offsets", "get", "a"]) == 0
    assert ("The queue has it." in out(capsys)) == (not stored), "what an earlier config has left is shown"
    assert main(["offsets", "get", "a", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["position"] == "The queue has it."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a"], "Name a partition and its offset"),
        (["a", "{", "1"], "Cannot parse the partition"),
        (["a", "t", "1"], "'t' is no partition. Write TOPIC:NUMBER for a sink"),
        (["a", "t:0", "x"], "Cannot parse the offset"),
        (["a", "-f", "/no/such/file"], "No such file"),
        (["a", "t:0", "1", "--to-latest"], "Give either a target"),
        (["a", "-f", "x", "--shift-by", "1"], "Give either a target"),
        (["a", "t:0", "1", "--dry-run"], "need --to-datetime"),
        (["a", "t:0", "1", "--topic", "t"], "need --to-datetime"),
    ],
)
def test_offsets_that_cannot_be_read_are_refused(
    api: PretendClient, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["offsets", "set", *arguments]) == 1
    assert message in capsys.readouterr().err
    assert api.calls == []


@pytest.mark.parametrize(
    ("arguments", "target"),
    [
        (["--to-earliest"], ("earliest", None, [], [])),
        (["--to-latest", "--topic", "t", "--partition", "0", "--partition", "1"], ("latest", None, ["t"], ["0", "1"])),
        (["--to-datetime", "2026-11-23T09:00:00.000"], ("2026-11-23T09:00:00.000", None, [], [])),
        (["--shift-by", "-5", "--partition", '{"table": "a"}'], (None, -5, [], ['{"table": "a"}'])),
    ],
)
def test_offsets_are_set_to_a_target(
    api: PretendClient, capsys: pytest.CaptureFixture[str], arguments: list[str], target: tuple[object, ...]
) -> None:
    table = [["PARTITION", "OFFSET", "NEW-OFFSET"], ["t:0", "9", "4"], ["t:1", "-", "5"]]
    assert main(["offsets", "set", "a", *arguments, "--dry-run"]) == 0
    assert [line.split() for line in out(capsys)] == table
    assert api.calls == []
    to, shift_by, topics, partitions = target
    named = (("to", to), ("shift_by", shift_by), ("topics", topics), ("partitions", partitions))
    assert api.asked == [("find_offsets", "a", *named)]
    assert main(["offsets", "set", "a", *arguments]) == 0
    assert api.calls == [("alter_offsets", "a", [{"partition": each["partition"], "offset": each["offset"]} for each in FOUND])]
