"""Moves of connectors with Spark applications of their own, between a real Kafka Connect and a real Airflow.

MOVES=20: moves each way in which a driver is killed. SEED=1: which of its processes, and when.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from sluiceway.cli.main import main
from support import peer
from support.eventually import eventually
from support.faults.worker_group import read
from support.growing_file import GrowingFile
from support.kafka import Kafka
from support.migration import completed, file_source, started
from support.stack import RunningStack

pytestmark = [pytest.mark.airflow, pytest.mark.peer, pytest.mark.long]

STRINGS = dict.fromkeys(("key.converter", "value.converter"), "org.apache.kafka.connect.storage.StringConverter")
MOVES = int(os.environ.get("MOVES", "2"))
SEED = int(os.environ.get("SEED", "1"))
FLUSHED = 50 * 10  # lines that a source repeats at most after a kill: those of a flush interval


def connect(bootstrap: str, folder: Path) -> peer.PeerDistributed:
    name = f"moves-{folder.name}"
    return peer.PeerDistributed(
        bootstrap, name, folder / "peer", (f"{name}-configs", f"{name}-offsets", f"{name}-status"), STRINGS
    )


def test_a_driver_is_ready_before_a_connector_stops_and_ends_when_it_has_moved_back(
    stack: RunningStack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bootstrap = stack.addresses.bootstrap
    growing = GrowingFile(tmp_path / "in.txt")
    configs = {"moves": file_source(growing.path, "moved-lines"), "rests": file_source(growing.path, "no-lines")}
    with connect(bootstrap, tmp_path) as theirs:
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


@pytest.mark.timeout(7200)
def test_moves_whose_driver_is_killed_lose_nothing(stack: RunningStack, tmp_path: Path) -> None:
    bootstrap, name, topic = stack.addresses.bootstrap, "killed", "killed-lines"
    growing, chance, kills = GrowingFile(tmp_path / "in.txt"), random.Random(SEED), 0  # noqa: S311 (no secret)
    with connect(bootstrap, tmp_path) as theirs:
        peer.put_config(theirs.rest, name, {**file_source(growing.path, topic), **STRINGS})
        peer.wait_for_state(theirs.rest, name, "RUNNING")
        command = [sys.executable, "-m", "sluiceway.cli.main", "migrate", "--from", theirs.rest, "--to", stack.addresses.rest]
        for number, way in enumerate(([], ["--back"]) * MOVES, 1):
            execute = [*command, "--execute", "--all", *way]
            move = started(execute)
            eventually(lambda move=move: stack.driver(name) or move.poll() is not None, what="a driver, or the move's end")
            growing.grows(chance.randrange(150))  # until the moment of the kill
            kills += killed(chance.choice((stack.driver(name), stack.jvm(name))))
            completed(move, execute, 1)
            growing.grows()
            print(f"move {number} of {2 * MOVES}, {kills} kills", flush=True)
        written = Counter(growing.close())

        def sent() -> Counter[str]:
            return Counter((each.value or b"").decode() for each in read(bootstrap, topic))

        eventually(lambda: not written - sent(), what="all lines")
        repeated = (sent() - written).total()
        print(f"{kills} kills of drivers in {2 * MOVES} moves: 0 of {written.total()} lines lost, {repeated} repeated")
        assert kills
        assert repeated <= kills * FLUSHED
        stack.connect.delete(name)


def killed(process: psutil.Process | None) -> bool:
    """Kill a process, if there is one, and return whether it was there."""
    with suppress(psutil.NoSuchProcess):
        if process is not None:
            process.kill()
            return True
    return False
