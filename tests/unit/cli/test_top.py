"""``sluiceway top``."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sluiceway.cli.main import main
from sluiceway.rest.client import RestError
from unit.cli.pretend_client import STATUS, PretendClient, out


def test_top_prints_tables_one_below_the_other_into_a_pipe(api: PretendClient, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", "-n", "2", "-i", "0.1"]) == 0
    printed = out(capsys)
    assert [line.split() for line in printed[::2]] == [["NAME", "TYPE", "STATE", "TASKS", "OFFSETS/S", "LAG"]] * 2
    assert printed[1].split() == ["a", "source", "RUNNING", "1", "FAILED", "-", "-"]
    assert printed[3].split()[-2:] == ["0.0", "-"]
    api.failures = {"offsets": RestError(404, "no")}
    assert main(["top", "-n", "1"]) == 0
    api.failures = {"offsets": RestError(0, "away")}
    assert main(["top", "-n", "1"]) == 5


@pytest.mark.parametrize("config", [{"topics": "t"}, {"topics.regex": "t.*"}])
def test_the_lag_that_top_shows_counts_partitions_without_a_commit(
    config: dict[str, str],
    api: PretendClient,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    api.configs = {"s": {"name": "s", "connector.class": "FileStreamSink", **config}}
    committed = [(0, 70), (5, 9)]  # partition 5 does not exist any more
    offsets = [
        {"partition": {"kafka_topic": "t", "kafka_partition": partition}, "offset": {"kafka_offset": offset}}
        for partition, offset in committed
    ]
    monkeypatch.setattr(api, "answer_statuses", lambda: {"s": STATUS | {"name": "s", "type": "sink"}})
    monkeypatch.setattr(api, "answer_offsets", lambda _name: offsets)
    begins, ends = {0: 5, 1: 30}, {0: 100, 1: 50}
    monkeypatch.setattr("sluiceway.kafka.clients.admin_client", lambda _worker, _own, **_: object())
    monkeypatch.setattr("sluiceway.kafka.admin.partition_counts", lambda _admin: {"t": 2}, raising=False)
    for name, known in (("beginning_offsets", begins), ("end_offsets", ends)):
        monkeypatch.setattr(
            f"sluiceway.kafka.admin.{name}",
            lambda _admin, places, known=known: {place: known[place.partition] for place in places if place.partition in known},
        )
    worker = tmp_path / "worker.properties"
    worker.write_text("bootstrap.servers=b:9092\n")
    assert main(["top", "-n", "1", "--worker", str(worker)]) == 0
    assert out(capsys)[1].split()[-1] == "50"


def test_a_terminal_shows_the_connectors_that_fit_and_only_their_offsets_are_read(
    api: PretendClient, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"c{number:03}" for number in range(1000)]
    states = dict.fromkeys(names, "PAUSED") | {"c999": "FAILED", "c500": "RUNNING"}
    statuses = {name: {**STATUS, "name": name, "connector": {"state": state}, "tasks": []} for name, state in states.items()}
    read: list[str] = []
    monkeypatch.setattr(api, "answer_statuses", lambda: statuses)
    monkeypatch.setattr(api, "answer_offsets", lambda name: read.append(name) or [])
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((50, 8)))
    assert main(["top", "-n", "1"]) == 0
    head, _, *lines = out(capsys)
    assert head.endswith("1000 connector(s): 1 FAILED, 1"), "cut to the terminal's width"
    assert [line.split()[0] for line in lines] == ["\033[31mc999", "c500", "c000", "c001", "c002"]
    assert read == ["c999", "c500", "c000", "c001", "c002"]
