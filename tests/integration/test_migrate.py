"""``sluiceway migrate`` between a real Kafka Connect 4.3.0 cluster and Sluiceway, while files grow."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sluiceway.cli.main import main
from support import peer
from support.eventually import LIMIT, eventually
from support.growing_file import GrowingFile
from support.migration import SluicewayInThreads, complete, file_sink, file_source

pytestmark = [pytest.mark.kafka, pytest.mark.peer]

STRINGS = dict.fromkeys(("key.converter", "value.converter"), "org.apache.kafka.connect.storage.StringConverter")


def connect_cluster(bootstrap: str, group: str, folder: Path, **more: str) -> peer.PeerDistributed:
    """Return a Kafka Connect cluster of one worker, not started yet, with topics of its own."""
    topics = (f"{group}-configs", f"{group}-offsets", f"{group}-status")
    return peer.PeerDistributed(bootstrap, group, folder / "peer", topics, {**STRINGS, **more})


@pytest.mark.long
def test_a_source_and_a_sink_move_to_sluiceway_and_back_while_lines_arrive(
    kafka_bootstrap: str, unique: Callable[[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given, found = tmp_path / "in.txt", tmp_path / "out.txt"
    source, sink, topic, group = unique("source"), unique("sink"), unique("lines"), unique("migrate")
    configs = {source: file_source(given, topic), sink: file_sink(found, topic)}
    with (
        connect_cluster(kafka_bootstrap, group, tmp_path) as theirs,
        SluicewayInThreads(kafka_bootstrap, f"{group}-ours", **{"sluiceway.heartbeat.interval.ms": "500"}) as sluiceway,
    ):
        sluiceway.start_driver()
        ours = sluiceway.rest
        growing = GrowingFile(given)
        for name, config in configs.items():
            peer.put_config(theirs.rest, name, config)
        for name in configs:
            peer.wait_for_state(theirs.rest, name, "RUNNING")
        addresses = ["migrate", "--from", theirs.rest, "--to", ours]

        assert main([*addresses, "--json"]) == 0
        report = {each["name"]: each for each in json.loads(capsys.readouterr().out)["connectors"]}
        assert [report[name]["plugins"][0]["implementation"] for name in configs] == ["python", "python"]
        assert [report[name]["state"] for name in configs] == ["RUNNING", "RUNNING"]

        growing.grows()
        assert main([*addresses, "--execute", "--all"]) == 0, capsys.readouterr()
        assert states(theirs.rest, *configs) == [["STOPPED"]] * 2
        assert states(ours, *configs) == [["RUNNING", "RUNNING"]] * 2
        assert [peer.get_config(ours, name) for name in configs] == [{**config, "name": name} for name, config in configs.items()]
        growing.grows()
        complete(found, growing.path.read_text().splitlines()[:-1])

        assert main([*addresses, "--back", "--execute", "--all"]) == 0, capsys.readouterr()
        assert states(ours, *configs) == [["STOPPED"]] * 2
        assert states(theirs.rest, *configs) == [["RUNNING", "RUNNING"]] * 2
        growing.grows()
        lines = growing.close()
        assert complete(found, lines) == lines, "each line once"


@pytest.mark.long
def test_sluiceway_takes_over_connectors_of_shared_topics_when_the_workers_have_stopped(
    kafka_bootstrap: str, unique: Callable[[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, name, topic, group = tmp_path / "out.txt", unique("source"), unique("lines"), unique("shared")
    found.write_text("one\n")
    with (
        SluicewayInThreads(kafka_bootstrap, group) as sluiceway,
        ThreadPoolExecutor(1) as pool,
    ):
        with connect_cluster(kafka_bootstrap, group, tmp_path) as theirs:
            peer.put_config(theirs.rest, name, file_source(found, topic))
            peer.wait_for_state(theirs.rest, name, "RUNNING")
            addresses = ["migrate", "--from", theirs.rest, "--to", sluiceway.rest]
            assert main([*addresses, "--json"]) == 0
            assert json.loads(capsys.readouterr().out)["shared_topics"] is True
            takeover = pool.submit(main, [*addresses, "--execute", "--all"])
            eventually(lambda: "Waiting up to 300 s" in capsys.readouterr().out, what="the request to stop the workers")
        sluiceway.start_driver()
        assert takeover.result(LIMIT) == 0
        assert f"{name}: RUNNING at {sluiceway.rest}" in capsys.readouterr().out


def states(rest: str, *names: str) -> list[list[str]]:
    return [peer.states(rest, name) for name in names]
