"""``sluiceway new connector``: its printed commands, from an empty folder to records, on a real broker and a local Spark."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from matrix_environment import UNREACHABLE, said

from sluiceway.config.properties import read_properties
from sluiceway.stack.ports import free_port
from sluiceway.stack.process import BackgroundProcess
from support.driver import write_properties
from support.eventually import eventually
from support.own_environment import make_environment

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

ORDERS = {
    "o-1": {"customer": "c-1", "amount": 10},
    "o-2": {"customer": "c-2", "amount": 20},
    "o-3": {"customer": "c-1", "amount": 30},
}


class Reader:
    """Follows what the command prints, in an environment of its own; only ports and the broker's address differ."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        path = f"{make_environment(folder / 'environment')}:{os.environ['PATH']}"
        own = {"PATH": path, "SPARK_LOCAL_IP": "127.0.0.1", "SLUICEWAY_HOME": str(folder / "home")}
        self._env = {**{name: text for name, text in os.environ.items() if name != "PYTHONPATH"}, **own}
        self._processes: list[BackgroundProcess] = []

    def run(self, commands: str) -> str:
        command = ["bash", "-euc", commands]
        done = subprocess.run(command, cwd=self.folder, env=self._env, capture_output=True, text=True, check=False)
        if UNREACHABLE in said(done):  # pip installs what builds a package; this says nothing about a change
            pytest.skip(said(done))
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def start(self, folder: Path, command: str) -> BackgroundProcess:
        process = BackgroundProcess(
            command.split()[0], ["bash", "-c", f"exec {command}"], self.folder / "state", env=self._env, cwd=folder
        )
        self._processes.append(process)
        process.start()
        return process

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.stop()


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    made = Reader(tmp_path)
    yield made
    made.stop()


def change(file: Path, changes: Mapping[str, str]) -> None:
    write_properties(file, {**read_properties(file), **changes})


def get(url: str) -> Any:
    try:
        return httpx.get(url).raise_for_status().json()
    except httpx.HTTPError:
        return None


@pytest.mark.parametrize("kinds", ["--source --sink", pytest.param("--sink", marks=pytest.mark.long)])
def test_the_printed_commands_lead_to_records(
    reader: Reader, kinds: str, kafka_bootstrap: str, unique: Callable[[str], str]
) -> None:
    name = unique("made")
    told = reader.run(f"sluiceway new connector {name} {kinds}")
    commands = re.findall(r"^  ([^#\n]*[^#\s])", told, re.MULTILINE)
    assert [each.partition(" ")[0] for each in commands] == ["cd", "pip", "pytest", "python", "sluiceway", "sluiceway"]
    enter, install, test, service, _broker, standalone = commands
    assert " passed" in reader.run("\n".join((enter, install, test)))

    folder, rest, port = reader.folder / name, free_port(), free_port()
    listener = {"listeners": f"http://127.0.0.1:{rest}"}
    change(folder / "examples/worker.properties", {"bootstrap.servers": kafka_bootstrap, **listener})
    for config in set(standalone.split()) & {"examples/source.properties", "examples/sink.properties"}:
        change(folder / config, {"url": f"http://127.0.0.1:{port}"})
    reader.start(folder, f"{service.rstrip(' &')} --port {port}")
    worker = reader.start(folder, standalone)

    def copies() -> bool:
        assert worker.is_running(), worker.log_tail(60)
        found = get(f"http://127.0.0.1:{port}/copies") or []
        return sorted(each["document"]["amount"] for each in found) == [10, 20, 30]

    eventually(copies, what="the orders in the other collection")
    found = {each["id"]: each["document"] for each in get(f"http://127.0.0.1:{port}/copies")}
    assert list(found.values()) == list(ORDERS.values())
    if "--source" in kinds:
        assert found == ORDERS
    classes = [each["class"] for each in get(f"http://127.0.0.1:{rest}/connector-plugins")]
    module = name.replace("-", "_")
    assert len([each for each in classes if each.startswith(f"{module}.")]) == len(kinds.split())
