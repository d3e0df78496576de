"""Moves of connectors with Spark applications of their own, between a real Kafka Connect and a real Airflow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sluiceway.cli.main import main
from support import peer
from support.eventually import eventually
from support.growing_file import GrowingFile
from support.kafka import Kafka
from support.migration import file_source
from support.stack import RunningStack

pytestmark = [pytest.mark.airflow, pytest.mark.peer, pytest.mark.long]

STRINGS = dict.fromkeys(("key.converter", "value.converter"), "org.apache.kafka.connect.storage.StringConverter")
TOPICS = ("moves-configs", "moves-offsets", "moves-status")


def test_a_driver_is_ready_before_a_connector_stops_and_ends_when_it_has_moved_back(
    stack: RunningStack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bootstrap = stack.addresses.bootstrap
    growing = GrowingFile(tmp_path / "in.txt")
    configs = {"moves": file_source(growing.path, "moved-lines"), "rests": file_source(growing.path, "no-lines")}
    with peer.PeerDistributed(bootstrap, "moves", tmp_path / "peer", TOPICS, STRINGS) as theirs:
        for name, config in configs.items():
            peer.put_config(theirs.rest, name, {**config, **STRINGS})
            peer.wait_for_state(theirs.rest, name, "RUNNING")
        peer.change_state(theirs.rest, "rests", "pause")
        peer.wait_for_state(theirs.rest, "rests", "PAUSED")

        def move(*more: str) -> dict[str, Any]:
            arguments = ["migrate", "--from", theirs.rest, "--to", stack.addresses.rest, "--execute", "--json"]
            assert main([*arguments, *(more or ("--all",))]) == 0, capsys.readouterr()
            found: dict[str, Any] = json.loads(capsys.readouterr().out)
            return {each["name"]: each for each in found["connectors"]}

        growing.grows()
        there = move()
        assert {name: each["state"] for name, each in there.items()} == {"moves": "RUNNING", "rests": "PAUSED"}
        assert stack.is_paused("moves") is False
        assert stack.driver("moves") is not None
        assert stack.driver("rests") is None, "no driver waits for a paused connector"
        assert "sluiceway.migrate.state" not in stack.connect.config("moves")
        growing.grows()

        move("--back", "--all")
        assert stack.states("moves") == ("STOPPED",)
        assert stack.connect.config("moves")["sluiceway.moved.to"] == theirs.rest
        eventually(lambda: stack.is_paused("moves"), what="the DAG paused")
        eventually(lambda: stack.driver("moves") is None, what="the driver's end")
        growing.grows()

        move("--connectors", "mov*")
        growing.grows()
        lines = growing.close()
        values = Kafka(bootstrap).values("moved-lines", len(lines))
        assert values == lines, "each line once, in order"
        for name in configs:
            stack.connect.delete(name)
