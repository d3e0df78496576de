"""Standalone mode with Kafka's quickstart files, on a real broker and a local Spark."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, cast

import httpx
import pytest

from sluiceway.config.properties import read_properties
from sluiceway.stack.ports import free_port
from sluiceway.stack.process import BackgroundProcess
from support.driver import write_properties
from support.eventually import LIMIT, eventually

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


class Quickstart:
    """A folder with Kafka's quickstart: connect-standalone.properties and two connector files, unchanged except for ports."""

    def __init__(
        self,
        folder: Path,
        bootstrap: str,
        topic: str,
        sink_group: str,
        *,
        worker: Mapping[str, str] | None = None,
        source: Mapping[str, str] | None = None,
        sink: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.port = free_port()
        self.source, self.sink = folder / "test.txt", folder / "test.sink.txt"
        of_worker = {
            "bootstrap.servers": bootstrap,
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "key.converter.schemas.enable": "true",
            "value.converter.schemas.enable": "true",
            "offset.storage.file.filename": str(folder / "connect.offsets"),
            "offset.flush.interval.ms": "10000",
            "listeners": f"http://127.0.0.1:{self.port}",
            **(worker or {}),
        }
        of_source = {
            "name": "local-file-source",
            "connector.class": "FileStreamSource",
            "tasks.max": "1",
            "file": "test.txt",
            "topic": topic,
            **(source or {}),
        }
        of_sink = {
            "name": sink_group,
            "connector.class": "FileStreamSink",
            "tasks.max": "1",
            "file": "test.sink.txt",
            "topics": topic,
            **(sink or {}),
        }
        self.files = [
            write_properties(folder / "connect-standalone.properties", of_worker),
            write_properties(folder / "connect-file-source.properties", of_source),
            write_properties(folder / "connect-file-sink.properties", of_sink),
        ]
        self.process = BackgroundProcess(
            "standalone", [sys.executable, "-m", "sluiceway.cli.main", "standalone", *self.files], folder / "state", cwd=folder
        )

    def start(self) -> None:
        self.process.start()

    def lines_arrive(self, expected: str, within: float = LIMIT) -> None:
        def arrived() -> bool:
            assert self.process.is_running(), self.process.log_tail(60)
            return self.sink.exists() and self.sink.read_text() == expected

        eventually(arrived, within=within, what=f"test.sink.txt = {expected!r}")

    def rest(self, path: str) -> Mapping[str, Any]:
        return httpx.get(f"http://127.0.0.1:{self.port}{path}").raise_for_status().json()


@pytest.fixture
def quickstart(tmp_path: Path, kafka_bootstrap: str, unique: Callable[[str], str]):  # type: ignore[no-untyped-def]
    made = Quickstart(tmp_path, kafka_bootstrap, unique("connect-test"), unique("local-file-sink"))
    yield made
    made.process.stop()


def test_the_quickstart_runs_and_continues_after_a_restart(quickstart: Quickstart) -> None:
    quickstart.source.write_text("foo\nbar\n")
    quickstart.start()
    quickstart.lines_arrive("foo\nbar\n")

    status = quickstart.rest("/connectors/local-file-source/status")
    assert status["connector"]["state"] == "RUNNING"
    assert [task["state"] for task in status["tasks"]] == ["RUNNING"]

    with quickstart.source.open("a") as file:
        file.write("Another line\n")
    quickstart.lines_arrive("foo\nbar\nAnother line\n")

    quickstart.process.stop()
    assert "Sluiceway stopped" in quickstart.process.log_tail(50)
    assert b"local-file-source" in (quickstart.folder / "connect.offsets").read_bytes()

    with quickstart.source.open("a") as file:
        file.write("after the restart\n")
    quickstart.start()
    quickstart.lines_arrive("foo\nbar\nAnother line\nafter the restart\n")


@pytest.mark.long
def test_pause_and_resume_by_rest_stop_and_continue_the_records(quickstart: Quickstart) -> None:
    quickstart.source.write_text("before\n")
    quickstart.start()
    quickstart.lines_arrive("before\n")
    base = f"http://127.0.0.1:{quickstart.port}/connectors/local-file-source"
    httpx.put(f"{base}/pause").raise_for_status()
    eventually(
        lambda: quickstart.rest("/connectors/local-file-source/status")["tasks"][0]["state"] == "PAUSED", what="the task's pause"
    )
    with quickstart.source.open("a") as file:
        file.write("while paused\n")
    httpx.put(f"{base}/resume").raise_for_status()
    quickstart.lines_arrive("before\nwhile paused\n")


@pytest.mark.long
def test_transforms_and_config_references_work_in_sources_and_sinks(
    tmp_path: Path, kafka_bootstrap: str, unique: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONNECTOR_ORIGIN", "a secret place")
    kind = "org.apache.kafka.connect.transforms"
    made = Quickstart(
        tmp_path,
        kafka_bootstrap,
        unique("connect-test"),
        unique("local-file-sink"),
        worker={
            "value.converter.schemas.enable": "false",
            "config.providers": "env",
            "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
        },
        source={
            "transforms": "MakeMap,InsertSource",
            "transforms.MakeMap.type": f"{kind}.HoistField$Value",
            "transforms.MakeMap.field": "line",
            "transforms.InsertSource.type": f"{kind}.InsertField$Value",
            "transforms.InsertSource.static.field": "data_source",
            "transforms.InsertSource.static.value": "${env:CONNECTOR_ORIGIN}",
        },
        sink={
            "transforms": "never,number",
            "transforms.never.type": f"{kind}.Filter",
            "transforms.never.predicate": "elsewhere",
            "transforms.number.type": f"{kind}.InsertField$Value",
            "transforms.number.offset.field": "n",
            "predicates": "elsewhere",
            "predicates.elsewhere.type": f"{kind}.predicates.TopicNameMatches",
            "predicates.elsewhere.pattern": "no-.*",
        },
    )
    made.source.write_text("foo\nbar\n")
    made.start()
    try:
        made.lines_arrive(
            "".join(f"{{line={line}, data_source=a secret place, n={n}}}\n" for n, line in enumerate(("foo", "bar")))
        )
        shown = made.rest("/connectors/local-file-source")
        assert "${env:CONNECTOR_ORIGIN}" in str(shown)
        assert "a secret place" not in str(shown)
        assert "a secret place" not in made.process.log_tail(1000)
    finally:
        made.process.stop()


def test_a_refused_connector_ends_the_process_with_connects_exit_code(
    tmp_path: Path, kafka_bootstrap: str, unique: Callable[[str], str]
) -> None:
    import subprocess

    made = Quickstart(tmp_path, kafka_bootstrap, unique("connect-test"), unique("local-file-sink"))
    write_properties(made.files[1], {"name": "bad", "connector.class": "FileStreamSource", "file": "test.txt"})
    ended = subprocess.run(
        [sys.executable, "-m", "sluiceway.cli.main", "standalone", *made.files],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 3, ended.stderr
    assert "Failed to create connector for" in ended.stderr
    assert 'Missing required configuration "topic" which has no default value.' in ended.stderr


def test_brokers_that_do_not_answer_are_named_before_anything_starts(tmp_path: Path, unique: Callable[[str], str]) -> None:
    import subprocess

    servers = f"127.0.0.1:{free_port()}"
    made = Quickstart(tmp_path, servers, unique("connect-test"), unique("local-file-sink"))
    ended = subprocess.run(
        [sys.executable, "-m", "sluiceway.cli.main", "standalone", *made.files],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert ended.returncode == 1, ended.stderr
    assert f"sluiceway: Cannot reach Kafka at {servers}: " in ended.stderr
    assert "Check bootstrap.servers" in ended.stderr
    assert "spark" not in ended.stderr


@pytest.mark.long
def test_the_console_source_reads_what_is_typed(tmp_path: Path, kafka_bootstrap: str, unique: Callable[[str], str]) -> None:
    import subprocess

    made = Quickstart(tmp_path, kafka_bootstrap, unique("connect-test"), unique("local-file-sink"))
    topic = read_properties(made.files[1])["topic"]
    console = {"name": "local-console-source", "connector.class": "FileStreamSource", "tasks.max": "1", "topic": topic}
    write_properties(made.files[1], console)
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "sluiceway.cli.main", "standalone", *made.files],
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
        )
    typed = cast("IO[bytes]", process.stdin)

    def arrived(expected: str) -> bool:
        assert process.poll() is None, (tmp_path / "log").read_text()[-4000:]
        return made.sink.exists() and made.sink.read_text() == expected

    try:
        typed.write(b"typed before the task runs\n")
        typed.flush()
        eventually(lambda: arrived("typed before the task runs\n"), what="the first line")
        typed.write(b"typed\nafterwards\n")
        typed.close()
        eventually(lambda: arrived("typed before the task runs\ntyped\nafterwards\n"), what="all lines")
    finally:
        process.terminate()
        assert process.wait(LIMIT) == 0
