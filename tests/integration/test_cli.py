"""The command line against ``sluiceway rest`` over a real Kafka."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sluiceway.kafka.clients import producer
from support.eventually import LIMIT, eventually

pytestmark = pytest.mark.kafka

SOURCE = {"connector.class": "FileStreamSource", "file": "/f", "topic": "t"}


class Shell:
    """Runs ``sluiceway`` commands against one server."""

    def __init__(self, server: str, folder: Path) -> None:
        self._environment = {**os.environ, "SLUICEWAY_SERVER": server, "XDG_CONFIG_HOME": str(folder)}

    def __call__(self, *arguments: str, code: int = 0, stdin: str | None = None) -> str:
        command = [sys.executable, "-m", "sluiceway.cli.main", *arguments]
        done = subprocess.run(
            command, env=self._environment, capture_output=True, text=True, timeout=60, check=False, input=stdin
        )
        assert done.returncode == code, f"{done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr


@pytest.fixture
def shell(kafka_bootstrap: str, unique: Callable[[str], str], tmp_path: Path) -> Iterator[Shell]:
    properties = {"bootstrap.servers": kafka_bootstrap, "group.id": unique("group"), "listeners": "http://127.0.0.1:0"}
    for kind in ("config", "offset", "status"):
        properties |= {f"{kind}.storage.topic": unique(kind), f"{kind}.storage.replication.factor": "1"}
    worker_file, log = tmp_path / "worker.properties", tmp_path / "rest.log"
    worker_file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "sluiceway.cli.main", "rest", str(worker_file)], stdout=output, stderr=output
        )
    try:
        eventually(lambda: "REST API is listening on http" in log.read_text() or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        yield Shell(log.read_text().split("REST API is listening on ")[1].split()[0].rstrip(","), tmp_path)
    finally:
        process.terminate()
        process.wait(LIMIT)


def test_a_connectors_lifecycle(shell: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "connectors"
    folder.mkdir()
    (folder / "a.properties").write_text("name=a\n" + "".join(f"{key}={value}\n" for key, value in SOURCE.items()))
    (folder / "b.yaml").write_text("name: b\ninitial_state: STOPPED\nconfig:\n  connector.class: FileStreamSource\n  topic: t\n")
    assert "2 to create" in shell("apply", "-f", str(folder), "--dry-run")
    shell("diff", "-f", str(folder), code=8)
    assert "Connector a created\nConnector b created" in shell("apply", "-f", str(folder))
    assert shell("apply", "-f", str(folder)) == "Connector a unchanged\nConnector b unchanged\n"
    shell("diff", "-f", str(folder))
    assert "b     source  STOPPED" in shell("get", "connectors")

    shell("patch", "a", "-s", "batch.size=7", "-r", "file")
    config = json.loads(shell("get", "config", "a", "-o", "json"))
    assert config == {"name": "a", "connector.class": "FileStreamSource", "topic": "t", "batch.size": "7"}
    for verb, state in (("pause", "PAUSED"), ("stop", "STOPPED")):
        shell(verb, "connector", "a")
        assert json.loads(shell("get", "status", "a", "-o", "json"))["connector"]["state"] == state
    shell("resume", "a")
    shell("restart", "a", "--tasks", "--only-failed")
    assert "topic" in shell("describe", "connector", "a")

    only_a = json.dumps({"name": "a", "config": SOURCE})
    assert "- b" in shell("apply", "-f", "-", "--prune", stdin=only_a)
    assert json.loads(shell("get", "connectors", "-o", "json")).keys() == {"a"}
    shell("delete", "a")
    assert "not found" in shell("delete", "a", code=4)


def test_offsets_are_set_shown_and_removed_once_the_connector_is_stopped(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"name": "a", "config": SOURCE}))
    shell("apply", "-f", str(tmp_path / "a.json"))
    partition, offset = '{"filename": "/f"}', '{"position": 7}'
    assert "must be in the STOPPED state" in shell("offsets", "set", "a", partition, offset, code=3)
    shell("stop", "a")
    assert "altered successfully" in shell("offsets", "set", "a", partition, offset)
    shown = shell("offsets", "get", "a", "-o", "json")
    assert json.loads(shown)["offsets"] == [{"partition": {"filename": "/f"}, "offset": {"position": 7}}]
    assert "reset successfully" in shell("offsets", "reset", "a")
    assert json.loads(shell("get", "offsets", "a", "-o", "json")) == []
    (tmp_path / "o.json").write_text(shown)
    shell("offsets", "set", "a", "-f", str(tmp_path / "o.json"))
    assert "position=7" in shell("offsets", "get", "a")


def test_a_sinks_offsets_and_its_lag_are_shown(
    shell: Shell, tmp_path: Path, kafka_bootstrap: str, unique: Callable[[str], str]
) -> None:
    name, topic = unique("sink"), unique("topic")
    config = {"connector.class": "FileStreamSink", "topics": topic, "file": "/out"}
    (tmp_path / "s.json").write_text(json.dumps({"name": name, "config": config, "initial_state": "STOPPED"}))
    writer = producer({"bootstrap.servers": kafka_bootstrap})
    for _ in range(10):
        writer.produce(topic, b"x", partition=0)
    assert writer.flush(20) == 0
    shell("apply", "-f", str(tmp_path / "s.json"))
    shell("offsets", "set", name, f"{topic}:0", "4")
    assert shell("offsets", "get", name).splitlines()[1].split() == [f"{topic}:0", "4"]
    worker_file = str(tmp_path / "worker.properties")
    assert shell("top", "-n", "1", "--worker", worker_file).splitlines()[1].split()[-1] == "6"


def test_validation_plugins_and_log_levels(shell: Shell, tmp_path: Path) -> None:
    bad = {"name": "a", "connector.class": "FileStreamSource", "tasks.max": "none", "topcis": "t"}
    (tmp_path / "a.json").write_text(json.dumps(bad))
    printed = shell("validate", "-f", str(tmp_path / "a.json"), code=3)
    assert "tasks.max = none" in printed
    assert "topcis = t" in printed
    assert "error(s):" in shell("apply", "-f", str(tmp_path / "a.json"), code=3)
    assert "FileStreamSource" in shell("plugins")
    assert "batch.size" in shell("describe", "plugin", "FileStreamSource")
    assert "sluiceway.test" in shell("loggers", "set", "sluiceway.test", "DEBUG")
    assert shell("loggers", "get", "sluiceway.test").splitlines()[1].split() == ["sluiceway.test", "DEBUG"]


def test_an_unreachable_server_and_an_unknown_connector_have_different_exit_codes(shell: Shell) -> None:
    assert "Cannot reach" in shell("get", "connectors", "--server", "http://127.0.0.1:1", code=5)
    shell("get", "status", "nope", code=4)
    shell("get", "connectors", "--server", "http://127.0.0.1:1,http://127.0.0.1:2", code=5)
