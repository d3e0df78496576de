"""The task of DltSource with real readers' processes, without Kafka."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sluiceway.api import SourceColumns
from sluiceway.connectors.dlt import DltSourceConnector
from sluiceway.errors import ConnectError
from sluiceway.runtime.memory import MemoryOffsets
from sluiceway.testing import SourceConnectorContract
from support.dlt_rest import RestApi
from support.dlt_task import config_of, read, read_run, running
from support.eventually import LIMIT, eventually


@pytest.mark.long
class TestDltSource(SourceConnectorContract):
    connector_class = DltSourceConnector
    records_within = poll_within = LIMIT
    resumable = False  # after a page, not after each of its records

    @pytest.fixture
    def config(self) -> dict[str, str]:
        return {**config_of("numbers", {"rows": 3}), "dlt.run.interval.ms": "86400000"}


def test_a_restart_continues_after_the_last_page() -> None:
    offsets, config = MemoryOffsets(), config_of("numbers", {"rows": 250}, topic_prefix="p.")
    with running(config, offsets) as task:
        first = read(task, 100)
        offsets.store_all(first)
    with running(config, offsets) as task:
        rest = read_run(task, offsets)
    assert [record.value["id"] for record in rest] == list(range(100, 250))
    assert {record.topic for record in (*first, *rest)} == {"p.numbers"}
    assert rest[0].key["id"] == 100
    assert first[0].value_schema == rest[0].value_schema
    with running(config, offsets) as task:
        assert read_run(task, offsets) == []


def test_many_rows_are_columns() -> None:
    with running(config_of("numbers", {"rows": 100})) as task:
        found: list[Any] = []
        eventually(lambda: found.append(task.poll_columns()) or found[-1])
        [columns] = [each for each in found if each]
        assert isinstance(columns, SourceColumns)
        assert columns.source_offset == columns.records()[-1].source_offset
        assert len(columns.records()) == len(columns) == 100
        assert [each.source_offset for each in columns.records()[:-1]] == [None] * 99
        assert task.metrics()["rows-read"] == 100


def test_runs_follow_one_another() -> None:
    with running(config_of("counting", {"rows": 5}, dlt_run_interval_ms="0")) as task:
        assert [record.value["id"] for record in read(task, 10)] == [*range(5), *range(5)]
        assert task.ended


@pytest.fixture
def api() -> Iterator[RestApi]:
    with closing(RestApi(250)) as started:
        yield started


def test_a_rest_api_is_read_with_its_limits(api: RestApi) -> None:
    api.limited_every = 2
    with running(config_of("rest", {"url": api.url})) as task:
        ids = [record.value["id"] for record in read_run(task)]
    assert ids == list(range(250))
    assert api.limited


def test_a_system_that_is_away_is_waited_for_and_the_status_says_so() -> None:
    with running({**config_of("crashing", {"how": "refused"}), "dlt.secret.password": "hunter2"}) as task:
        reasons: list[str] = []
        task.context.waiting = lambda reason=None, _seconds=0.0: reasons.append(str(reason))
        assert len(read(task, 3)) == 3  # a row of each run
    assert reasons[0] == "Resource crashing: ConnectionRefusedError: nobody at http://[hidden]@host"
    assert "None" in reasons  # an answer ends the wait


def test_a_system_that_stays_away_fails_the_task() -> None:
    config = {**config_of("crashing", {"how": "refused", "password": "x"}), "sluiceway.unreachable.timeout.ms": "0"}
    with (
        running(config) as task,
        pytest.raises(ConnectError, match=r"nobody at .* more than sluiceway.unreachable.timeout.ms allows"),
    ):
        eventually(lambda: task.poll() and False)


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("raise", r"Resource crashing: ValueError: wrong login \[hidden\]"),
        ("exit", "SystemExit: 3"),
        ("kill", "The process that reads the source ended by signal 9"),
    ],
)
def test_what_ends_a_run_fails_the_task_without_secrets(how: str, why: str, capfd: pytest.CaptureFixture[str]) -> None:
    secret = "a-secret-of-the-config"
    config = {**config_of("crashing", {"how": how}), "dlt.secret.password": secret}
    with running(config) as task:
        read(task, 1)
        with pytest.raises(ConnectError, match=why) as caught:
            eventually(lambda: task.poll() and False)
    assert secret not in str(caught.value)
    assert secret not in "".join(capfd.readouterr())


def test_a_wait_of_the_source_does_not_delay_a_stop() -> None:
    with running(config_of("waiting")) as task:
        read(task, 1)
        pid = _child(task)
    assert not Path(f"/proc/{pid}").exists()  # a stop waits for the end of the process


def _child(task: Any) -> int:
    return int(task._reader._process.pid)


def test_the_reader_ends_with_the_process_that_started_it() -> None:
    code = (
        "import os, sys\n"
        "from sluiceway.connectors.dlt.process import ReaderProcess\n"
        "reader = ReaderProcess({'config': {'dlt.source': 'support.dlt_sources.waiting'}})\n"
        "frames = reader.frames()\n"
        "next(frames)\n"
        "print(reader._process.pid, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, env=paths, check=False)
    assert ended.returncode == -signal.SIGKILL
    eventually(lambda: not Path(f"/proc/{int(ended.stdout)}/exe").exists(), what="the end of the reader")


def test_nothing_of_this_process_and_nothing_of_airflow_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PASSWORD", "of-the-environment")
    monkeypatch.setenv("AIRFLOW__CORE__FERNET_KEY", "of-airflow")
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    (tmp_path / ".dlt").mkdir()
    (tmp_path / ".dlt" / "secrets.toml").write_text('password = "of-a-file"\n')
    monkeypatch.chdir(tmp_path)
    own = {"dlt.secret.password": "of-the-config", "dlt.config.place": "here"}
    with (
        running({**config_of("secretive"), **own}) as one,
        running({**config_of("secretive"), **own, "dlt.config.place": "there"}) as two,
    ):
        [first], [second] = read(one, 1), read(two, 1)
    told = first.value
    assert (told["password"], told["place"], second.value["place"]) == ("of-the-config", "here", "there")
    assert told["pid"] != second.value["pid"] != os.getpid()
    assert told["airflow"] is False
    assert "of-airflow" not in str(told)
    assert "AIRFLOW__CORE__FERNET_KEY" not in json.loads(told["environment"])
    assert "of-the-config" not in told["arguments"]
    assert sorted(each.name for each in tmp_path.iterdir()) == [".dlt"]  # neither Airflow's database nor dlt's


def test_a_value_that_only_the_environment_has_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", "of-the-environment")
    with running(config_of("secretive")) as task, pytest.raises(ConnectError, match="has no value for password, place"):
        eventually(lambda: task.poll() and False)


def test_nothing_is_sent_but_what_the_source_sends() -> None:
    with running(config_of("sockets")) as task:
        [*_, last] = read(task, 3)
    asked = [each for each in json.loads(last.value["asked"]) if "connect" in each or "getaddrinfo" in each]
    assert asked == ["socket.connect (('127.0.0.1', 1),)"]
