"""Tests of the connector DAG bundle."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG

from sluiceway.errors import ConfigError, KafkaClientError
from sluiceway.operators import SinkConnectorOperator, SourceConnectorOperator
from sluiceway.provider.compat import CronDataIntervalTimetable, backoff
from sluiceway.provider.dag_bundle import bundle as bundle_module
from sluiceway.provider.dag_bundle.bundle import ConnectorDagBundle
from sluiceway.provider.dag_bundle.connector_dag import connector_dag
from sluiceway.provider.dag_bundle.stubs import stub
from sluiceway.provider.pause_sync.airflow_db import AirflowDatabase
from sluiceway.storage.model import ClusterState, ConnectorEntry


class Bundle(ConnectorDagBundle):
    """A bundle that reads a dict instead of the config topic."""

    def __init__(self, folder: Path) -> None:
        super().__init__(name="connectors", refresh_interval=30)
        self.base_dir = folder
        self.topic: dict[str, str] | None = {}
        self.reads = 0

    def _read(self, timeout: float, *, ask_airflow: bool) -> dict[str, str]:
        self.reads += 1
        if self.topic is None:
            raise KafkaClientError("Cannot reach Kafka")
        return self.topic

    def files(self) -> list[str]:
        return sorted(path.name for path in self.path.iterdir())


def test_a_task_beside_a_dag_processor_does_not_read_kafka(tmp_path: Path) -> None:
    processor, task = Bundle(tmp_path), Bundle(tmp_path)
    processor.refresh()
    task.initialize()
    assert (processor.reads, task.reads) == (1, 0)


def test_the_dags_of_other_bundles_are_known_to_tasks_and_while_airflows_database_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other_bundles(_: AirflowDatabase, dags: list[str], bundle: str) -> dict[str, str]:
        assert (dags, bundle) == (["a"], "connectors")
        return {"a": "team"}

    processor, task = Bundle(tmp_path), Bundle(tmp_path)
    state = ClusterState({"a": ConnectorEntry("a", {"topic": "t"})})
    assert task._taken(state, ask_airflow=False) == {}
    monkeypatch.setattr(AirflowDatabase, "other_bundles", other_bundles)
    assert processor._taken(state, ask_airflow=True) == {"a": "team"}
    monkeypatch.undo()
    assert task._taken(state, ask_airflow=False) == {"a": "team"}
    monkeypatch.setattr(AirflowDatabase, "other_bundles", lambda *_: 1 / 0)
    assert processor._taken(state, ask_airflow=True) == {"a": "team"}
    assert Bundle(tmp_path / "new")._taken(state, ask_airflow=True) == {}, "nothing was ever found"


@pytest.mark.parametrize(
    ("storage", "writable", "below"),
    [(None, True, "home"), (None, False, "shared"), ("given", True, "given"), ("given", False, "given")],
)
def test_two_airflows_of_a_host_have_a_folder_each_unless_one_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, storage: str | None, writable: bool, below: str
) -> None:
    monkeypatch.setattr(bundle_module, "AIRFLOW_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path / "shared"))
    monkeypatch.setattr(os, "access", lambda path, mode: (path, mode, writable) == (tmp_path / "home", os.W_OK, True))
    if storage is None:
        monkeypatch.delenv("AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH")
    else:
        monkeypatch.setenv("AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH", str(tmp_path / storage))
    made = ConnectorDagBundle(name="connectors", refresh_interval=30)
    assert made.path.relative_to(tmp_path).parts[0] == below
    assert made.path.parts[-2:] == ("connectors", "dags")


def test_a_task_without_a_dag_processor_reads_kafka_each_time(tmp_path: Path) -> None:
    for text in ("1", "2"):
        task = Bundle(tmp_path)
        task.topic = {"connector-a.py": text}
        task.initialize()
        assert (task.path / "connector-a.py").read_text() == text


def test_a_folder_older_than_max_age_is_updated_by_the_task(tmp_path: Path) -> None:
    processor, task = Bundle(tmp_path), Bundle(tmp_path)
    processor.refresh()
    long_ago = time.time() - 91
    os.utime(tmp_path / "refreshed", (long_ago, long_ago))
    task.initialize()
    assert task.reads == 1


def test_the_dags_stay_while_kafka_does_not_answer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bundle = Bundle(tmp_path)
    bundle.topic = {"connector-a.py": "1"}
    bundle.refresh()
    bundle.topic = None
    bundle.refresh()
    assert bundle.files() == ["connector-a.py"]
    assert "keeps its present DAGs until Kafka answers: Cannot reach Kafka" in caplog.text


def test_an_outage_of_kafka_backs_off_and_logs_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    now = 0.0
    monkeypatch.setattr("sluiceway.provider.dag_bundle.bundle.time", SimpleNamespace(monotonic=lambda: now, time=time.time))
    bundle = Bundle(tmp_path)
    bundle.topic = None
    asked: list[float] = []
    for second in range(200):
        now, before = float(second), bundle.reads
        bundle.refresh()
        asked += [now] * (bundle.reads - before)
    assert asked == [0, 10, 30, 70, 130, 190]
    assert caplog.text.count("keeps its present DAGs") == 1
    bundle.topic, now = {"connector-a.py": "1"}, 250.0
    bundle.refresh()
    bundle.refresh()
    assert (bundle.reads, bundle.files()) == (len(asked) + 2, ["connector-a.py"])
    assert "reads the config topic again" in caplog.text


def test_a_refresh_waits_only_briefly_for_kafka(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = tmp_path / "worker.properties"
    worker.write_text("bootstrap.servers=127.0.0.1:1\n")
    monkeypatch.setattr("sluiceway.provider.dag_bundle.bundle._REFRESH_TIMEOUT_SECONDS", 0.5)
    bundle = ConnectorDagBundle(name="connectors", refresh_interval=30, worker_properties=str(worker))
    bundle.base_dir = tmp_path / "bundle"
    monkeypatch.setattr(
        "sluiceway.storage.config_backing_store.KafkaConfigBackingStore.start", lambda _self: pytest.fail("opened")
    )
    bundle.refresh()
    assert not (bundle.base_dir / "refreshed").exists()


def test_the_bundle_is_unversioned(tmp_path: Path) -> None:
    assert not ConnectorDagBundle.supports_versioning
    assert Bundle(tmp_path).get_current_version() is None


def _dag(name: str, config: dict[str, str], *, paused: bool = False) -> DAG:
    """Run the stub as Airflow's parser does."""
    scope: dict[str, DAG] = {}
    exec(compile(stub(name, config, paused=paused), "connector-stub.py", "exec"), scope)  # noqa: S102 (what Airflow does with it)
    return scope["dag"]


def test_a_connector_that_is_created_paused_has_a_paused_dag() -> None:
    assert _dag("c", {"connector.class": "FileStreamSource", "topic": "t"}, paused=True).is_paused_upon_creation is True


def test_a_long_running_connector_has_a_continuous_dag() -> None:
    dag = _dag("my logs", {"connector.class": "FileStreamSource", "topic": "t"})
    [task] = dag.tasks
    assert (dag.dag_id, dag.dag_display_name) == ("my_x20logs", "my logs")
    assert type(dag.timetable).__name__ == "ContinuousTimetable"
    assert (dag.max_active_runs, dag.catchup, dag.is_paused_upon_creation) == (1, False, False)
    assert isinstance(task, SourceConnectorOperator)
    assert task.connector == "my logs"


def test_retries_back_off_exponentially() -> None:
    [task] = _dag("c", {"topic": "t"}).tasks
    assert task.retries == 10
    delays = (task.retry_delay, task.max_retry_delay)
    assert (delays, task.retry_exponential_backoff) == ((timedelta(seconds=1), timedelta(seconds=60)), backoff(2))


def test_airflow_keys_configure_the_dag() -> None:
    keys = {"airflow.mode": "micro-batch", "airflow.schedule": "*/5 * * * *", "airflow.owner": "data"}
    dag = _dag("c", {"topics": "t", **keys, "airflow.tags": "a,b", "airflow.retries": "1"})
    [task] = dag.tasks
    assert isinstance(dag.timetable, CronDataIntervalTimetable)
    # Before Airflow 3.2, a timetable shows its expression as its summary only.
    timetable = dag.timetable
    assert getattr(timetable, "expression" if hasattr(timetable, "expression") else "summary") == "*/5 * * * *"
    assert set(dag.tags) == {"sluiceway", "sink", "a", "b"}
    assert (task.owner, task.retries) == ("data", 1)
    assert isinstance(task, SinkConnectorOperator)


@pytest.mark.parametrize("schedule", ["@continuous", "@once"])
def test_airflows_own_schedules_are_passed_on(schedule: str) -> None:
    dag: Any = _dag("c", {"topic": "t", "airflow.mode": "micro-batch", "airflow.schedule": schedule})
    assert dag.schedule == schedule


@pytest.mark.parametrize("schedule", ["@daily", "0 3 * * 1-5"])
def test_a_scheduled_run_has_the_data_interval_since_the_previous_run(schedule: str) -> None:
    dag = _dag("c", {"topic": "t", "airflow.mode": "micro-batch", "airflow.schedule": schedule})
    assert dag.timetable == CronDataIntervalTimetable(schedule, timezone="UTC")


def test_a_dag_default_may_change_the_operators_retries() -> None:
    with DAG("d", schedule=None, default_args={"retries": 3}):
        assert SourceConnectorOperator(task_id="t", connector="c").retries == 3


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"airflow.mode": "micro-batch", "airflow.schedule": "every now and then"}, "airflow.schedule"),
        ({"airflow.mode": "micro-batch", "airflow.schedule": "@sometimes"}, "airflow.schedule"),
        ({"airflow.mode": "sometimes"}, "airflow.mode"),
    ],
)
def test_an_invalid_key_is_an_import_error_with_the_reason(config: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        connector_dag("c", config, source_operator=SourceConnectorOperator, sink_operator=SinkConnectorOperator)


_PARSES = """
import os, sys
from pathlib import Path
from sluiceway.provider.dag_bundle.bundle import import_for_parsing
import airflow.dag_processing.manager, structlog
from airflow.dag_processing.processor import DagFileParseRequest, _parse_file

import_for_parsing()
before = set(sys.modules)
file = Path(sys.argv[1])
request = DagFileParseRequest(file=str(file), bundle_path=file.parent, bundle_name="connectors", callback_requests=[])
parsed = _parse_file(request, structlog.get_logger())
assert parsed.import_errors == {} and len(parsed.serialized_dags) == 1, parsed
print(sorted(name for name in set(sys.modules) - before if name.partition(".")[0] in ("airflow", "sluiceway")))
"""


def test_a_fork_of_the_dag_processor_finds_imported_what_a_parse_needs(tmp_path: Path) -> None:
    file = tmp_path / "connector-c.py"
    file.write_text(stub("c", {"connector.class": "FileStreamSource", "topic": "t"}))
    done = subprocess.run(
        [sys.executable, "-c", _PARSES, str(file)],
        env={**os.environ, "_AIRFLOW_PROCESS_CONTEXT": "client"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    imported = ast.literal_eval(done.stdout.splitlines()[-1])
    assert len(imported) < 5, imported
