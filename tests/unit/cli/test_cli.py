"""The command line: what it calls, prints and answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sluiceway
from sluiceway.cli import common
from sluiceway.cli.main import main, parser
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError, MissingToolError
from sluiceway.herder import Herder
from sluiceway.rest import cluster_id
from sluiceway.rest.server import RestServer
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore
from sluiceway.storage.model import State, Status, TaskId

SOURCE = {"connector.class": "FileStreamSource", "file": "/f", "topic": "t"}


class Api:
    """A REST server over stores in memory."""

    def __init__(self) -> None:
        self.worker = WorkerConfig.of({"listeners": "http://127.0.0.1:0"})
        self.status = MemoryStatusBackingStore()
        self.config = MemoryConfigBackingStore()
        self.herder = Herder(self.worker, self.config, self.status)
        self.server = RestServer(self.worker, lambda: self.herder)


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Api]:
    monkeypatch.setattr(cluster_id, "_lookup", lambda _worker: "id")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    api = Api()
    api.server.start()
    monkeypatch.setenv(common.SERVER_VARIABLE, api.server.addresses[0])
    yield api
    api.server.stop()


def module(monkeypatch: pytest.MonkeyPatch, name: str, **members: Any) -> None:
    """Put a stand-in in the place of a module that a subcommand imports when it runs."""
    stand_in = types.ModuleType(name)
    vars(stand_in).update(members)
    monkeypatch.setitem(sys.modules, name, stand_in)
    package, _, attribute = name.rpartition(".")
    monkeypatch.setattr(__import__(package, fromlist=["x"]), attribute, stand_in, raising=False)


def test_nothing_heavy_is_imported_before_a_subcommand_runs() -> None:
    heavy = "'airflow', 'pyspark', 'confluent_kafka', 'fastapi', 'uvicorn', 'httpx', 'orjson', 'psutil', 'asyncio'"
    code = f"import sys; from sluiceway.cli.main import parser; parser(); print([m for m in ({heavy}) if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"sluiceway {sluiceway.__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nope"],
        ["broker"],
        ["broker", "start", "--port", "x"],
        ["broker", "start", "--port", "70000"],
        ["get"],
        ["pause"],
        ["apply"],
        ["standalone"],
        ["dlq"],
        ["dlq", "replay"],
        ["dlq", "show", "x", "-n", "0"],
    ],
)
def test_wrong_usage_ends_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith("usage: sluiceway")


def test_every_subcommand_has_help() -> None:
    verbs = """demo up down ps broker rest standalone get describe apply diff validate preview patch pause resume stop delete
                restart offsets dlq plugins loggers logs top contexts config completion"""
    printed = parser().format_help()
    assert [verb for verb in verbs.split() if f"\n    {verb} " not in printed.replace("\n", " \n")] == []


def test_a_failure_is_one_message_on_stderr_and_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def down(_progress: Any) -> None:
        raise MissingToolError("No Java.")

    module(monkeypatch, "sluiceway.stack.up", down=down)
    assert main(["down"]) == 1
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "sluiceway: No Java.\n")


def test_an_interrupt_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def down(_progress: Any) -> None:
        raise KeyboardInterrupt

    module(monkeypatch, "sluiceway.stack.up", down=down)
    assert main(["down"]) == 130


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    code = "from sluiceway.cli.main import main; raise SystemExit(main(['config', 'airflow']))"
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run([sys.executable, "-c", code], stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


def test_up_down_and_ps_pass_their_arguments_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls: list[Any] = []
    module(
        monkeypatch,
        "sluiceway.stack.up",
        up=lambda worker, progress: calls.append((worker, progress)),
        down=lambda progress: calls.append(progress),
        ps=lambda progress: calls.append(progress) or 1,
    )
    file = tmp_path / "worker.properties"
    file.write_text("gruop.id=hunter2\ngroup.id=g\n")
    assert [main(["up"]), main(["up", str(file)]), main(["down"]), main(["ps"])] == [0, 0, 0, 1]
    assert calls == [(None, common.say), (file, common.say), common.say, common.say]
    warning = "Warning: Unknown key gruop.id in the worker's properties has no effect. Did you mean group.id?\n"
    assert capsys.readouterr().out == warning


def test_standalone_answers_with_the_runs_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    module(monkeypatch, "sluiceway.stack.standalone", run=lambda worker, files: calls.append((worker, files)) or 3)
    assert main(["standalone", "w.properties", "a.properties", "b.json"]) == 3
    assert calls == [(Path("w.properties"), [Path("a.properties"), Path("b.json")])]


def test_rest_serves_the_workers_file_or_the_one_of_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    served: list[str] = []
    module(monkeypatch, "sluiceway.rest.server", serve=lambda worker: served.append(worker.group_id))
    monkeypatch.setenv("SLUICEWAY_HOME", str(tmp_path))
    (tmp_path / "mine.properties").write_text("group.id=mine\n")
    assert main(["rest"]) == 0
    (tmp_path / "worker.properties").write_text("group.id=ups\n")
    assert main(["rest"]) == 0
    assert main(["rest", str(tmp_path / "mine.properties")]) == 0
    assert served == ["connect-cluster", "ups", "mine"]
    assert main(["rest", str(tmp_path / "missing.properties")]) == 1
    assert "missing.properties" in capsys.readouterr().err


class PretendBroker:
    """The embedded broker's part."""

    running = False

    def __init__(self, folder: Path, port: int | None = None) -> None:
        self.folder, self.port = folder, port

    def start(self, progress: Any) -> str:
        progress("fetching")
        PretendBroker.running = True
        return f"127.0.0.1:{self.port or 4711}"

    def stop(self) -> bool:
        was, PretendBroker.running = PretendBroker.running, False
        return was

    def status(self) -> Any:
        return types.SimpleNamespace(
            running=self.running, pid=17, bootstrap="127.0.0.1:4711", log=self.folder / "log", data=self.folder / "data"
        )


def test_the_broker_is_started_shown_and_stopped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module(monkeypatch, "sluiceway.stack.broker", EmbeddedBroker=PretendBroker)
    monkeypatch.setenv("SLUICEWAY_HOME", str(tmp_path / "home"))
    assert main(["broker", "status"]) == 1
    assert main(["broker", "start", "--port", "9092", "--dir", str(tmp_path / "b")]) == 0
    assert main(["broker", "status"]) == 0
    assert main(["broker", "stop"]) == 0
    assert main(["broker", "stop"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"Kafka is not running; data: {tmp_path}/home/broker/data",
        "fetching",
        f"Kafka is running on 127.0.0.1:9092; log: {tmp_path}/b/log",
        f"Kafka is running on 127.0.0.1:4711, process 17; log: {tmp_path}/home/broker/log; data: {tmp_path}/home/broker/data",
        "Kafka is stopped; its data is kept",
        "Kafka was not running",
    ]


def test_config_airflow_prints_what_a_shell_can_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "worker file.properties"
    file.touch()
    assert main(["config", "airflow", str(file)]) == 0
    script = capsys.readouterr().out + 'printf %s "$AIRFLOW__SLUICEWAY__WORKER_PROPERTIES"'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == str(file)


def test_config_bootstrap_prints_the_brokers_of_the_stack_or_of_a_worker_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SLUICEWAY_HOME", str(tmp_path / "home"))
    given, made = tmp_path / "given.properties", tmp_path / "home/worker.properties"
    made.parent.mkdir()
    given.write_text("bootstrap.servers=a:9092,b:9092\n")
    assert main(["config", "bootstrap"]) == 0
    made.write_text("bootstrap.servers=127.0.0.1\\:4711\n")  # as written by Java's rules
    assert main(["config", "bootstrap"]) == main(["config", "bootstrap", str(given)]) == 0
    assert capsys.readouterr().out.split() == ["localhost:9092", "127.0.0.1:4711", "a:9092,b:9092"]


def test_apply_makes_and_changes_connectors_from_files_of_both_kinds(
    api: Api, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    properties, document = tmp_path / "a.properties", tmp_path / "b.json"
    properties.write_text("name=a\n" + "".join(f"{key}={value}\n" for key, value in SOURCE.items()))
    document.write_text(json.dumps({"name": "b", "config": SOURCE}))
    assert main(["apply", "-f", str(properties), "-f", str(document)]) == 0
    assert main(["apply", "-f", str(document), str(properties)]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("Connector")] == [
        "Connector a created",
        "Connector b created",
        "Connector b unchanged",
        "Connector a unchanged",
    ]
    assert dict(api.herder.info("a").config) == SOURCE | {"name": "a"}


def test_apply_does_nothing_if_one_of_the_files_cannot_be_used(
    api: Api, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps({"name": "a", "config": SOURCE}))
    bad.write_text(json.dumps(SOURCE))
    assert main(["apply", "-f", str(good), "-f", str(bad)]) == 1
    assert "bad.json: the connector has no name" in capsys.readouterr().err
    assert api.herder.connectors() == []


def test_a_refused_config_is_told_with_all_findings(api: Api, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.json"
    file.write_text(json.dumps({"name": "a", "connector.class": "FileStreamSource", "tasks.max": 0}))
    assert main(["apply", "-f", str(file)]) == 3
    assert "2 error(s):" in capsys.readouterr().err


def test_connectors_are_told_what_to_do_in_turn(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    api.herder.create("a", SOURCE)
    api.herder.create("b", SOURCE)
    for verb in ("pause", "stop", "resume", "delete"):
        assert main([verb, "a", "b"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"Connector {name} {done}" for done in ("paused", "stopped", "resumed", "deleted") for name in ("a", "b")
    ]
    assert api.herder.connectors() == []
    assert main(["pause", "a"]) == 4
    assert capsys.readouterr().err == "sluiceway: Unknown connector a. 'sluiceway get connectors' lists the names.\n"


def test_get_shows_connectors_states_and_configs(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    api.herder.create("long-name", SOURCE)
    api.status.put_connector("long-name", Status(State.RUNNING, "host:1", 1))
    api.status.put_task(TaskId("long-name", 0), Status(State.RUNNING, "host:1", 1))
    api.status.put_task(TaskId("long-name", 1), Status(State.FAILED, "host:2", 1, trace="Error: boom\n  at\n"))
    assert main(["get", "connectors"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "NAME       TYPE    STATE    TASKS",
        "long-name  source  RUNNING  1 RUNNING, 1 FAILED",
    ]
    assert main(["get", "status", "long-name"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "NAME         STATE    WORKER",
        "long-name    RUNNING  host:1",
        "long-name-0  RUNNING  host:1",
        "long-name-1  FAILED   host:2",
        "",
        "long-name-1: Error: boom",
        "  at",
        "See docs/how-to/troubleshoot.md#failed.",
    ]
    assert main(["get", "config", "long-name"]) == 0
    assert "topic            t" in capsys.readouterr().out
    for what in (["connectors"], ["status", "long-name"], ["config", "long-name"]):
        assert main(["get", *what, "-o", "json"]) == 0
        assert json.loads(capsys.readouterr().out)


def test_get_of_an_empty_cluster_is_the_head_alone(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["get", "connectors"]) == 0
    assert capsys.readouterr().out == "NAME  TYPE  STATE  TASKS\n"


def test_the_server_is_an_option_that_wins_over_the_environment(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(common.SERVER_VARIABLE, "http://127.0.0.1:1")
    assert main(["get", "connectors"]) == 5
    assert main(["get", "connectors", "--server", api.server.addresses[0]]) == 0


def test_a_token_goes_with_each_request_and_not_on_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(common.TOKEN_VARIABLE, "abc")
    options = parser().parse_args(["get", "connectors"])
    with common.client(options) as client:
        assert client._http.headers["authorization"] == "Bearer abc"


def test_demo_leaves_a_report_and_the_addresses(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SLUICEWAY_HOME", str(tmp_path))
    seen: list[Any] = []
    addresses = types.SimpleNamespace(rest="http://localhost:1", airflow="http://localhost:2")
    module(monkeypatch, "sluiceway.stack.up", up=lambda _worker, _say: addresses)
    module(
        monkeypatch,
        "sluiceway.stack.demo",
        run_main_job=lambda client, folder, _say: seen.append((client.server, folder)),
        report=lambda _client, _folder: "Lines in 10",
    )
    module(
        monkeypatch,
        "sluiceway.stack.demo_shop",
        start=lambda client, home, _say: seen.append((client.server, home)),
    )
    assert main(["demo"]) == 0
    assert seen == [("http://localhost:1", tmp_path / "demo"), ("http://localhost:1", tmp_path)]
    printed = capsys.readouterr().out
    assert all(text in printed for text in ("Lines in 10", "http://localhost:1", "http://localhost:2", "sluiceway down"))


def test_a_demo_that_fails_ends_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_worker: Any, _say: Any) -> None:
        raise ConnectError("not healthy")

    module(monkeypatch, "sluiceway.stack.up", up=fail)
    assert main(["demo"]) == 1
