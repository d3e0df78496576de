"""Mistakes in a DAG, a config, or a connection fail a task at once and store nothing; what may pass by itself is retried."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG

import sluiceway.kafka.reachability
from sluiceway.errors import (
    BadRequestError,
    ConfigError,
    ConflictError,
    ConnectError,
    InternalTopicError,
    InvalidConfigError,
    KafkaClientError,
    NotFoundError,
    TemporaryProblem,
)
from sluiceway.operators import ApplicationOperator, ConnectorOperator, PauseConnectorOperator, SinkConnectorOperator
from sluiceway.operators.control import CreateConnectorOperator
from sluiceway.provider.compat import AirflowFailException
from sluiceway.provider.mistakes import is_mistake, mistakes_are_final, task_error
from sluiceway.sensors import ConnectorStateSensor
from sluiceway.stack.ports import free_port
from sluiceway.storage.memory import MemoryConfigBackingStore

SOURCE = {"name": "c", "connector.class": "FileStreamSource", "topic": "t"}
_NO_HOST = "nowhere.invalid:9092"

Run = Callable[..., None]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ConfigError("bootstrap.servers", "x", "no"), True),
        (BadRequestError("Failed to find any class"), True),
        (InvalidConfigError(["Missing required configuration"]), True),
        (InvalidConfigError([TemporaryProblem("refused"), "Missing required configuration"]), True),
        (InvalidConfigError([TemporaryProblem("refused")]), False),
        (KafkaClientError("Cannot reach Kafka", "_TRANSPORT"), False),
        (ConflictError("changed meanwhile"), False),
        (NotFoundError("Connector c not found"), False),
        (InternalTopicError("no partition 3"), False),
        (OSError("disk full"), False),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Exception) else "",
)
def test_a_mistake_stays_until_somebody_changes_something(error: Exception, expected: bool) -> None:
    assert is_mistake(error) is expected


@pytest.mark.parametrize("has_run", [False, True])
def test_what_was_right_when_the_first_driver_started_is_retried(has_run: bool) -> None:
    @mistakes_are_final
    def method(self: Any) -> None:
        raise ConfigError("Airflow has no connection 'k'")

    with pytest.raises(ConfigError if has_run else AirflowFailException, match="no connection 'k'"):
        method(SimpleNamespace(task_id="t", has_run=has_run))


def test_a_misspelled_class_in_a_mistake_is_followed_by_the_one_that_it_may_mean() -> None:
    errors = ["Invalid value JsonConvertr for configuration key.converter: Class JsonConvertr could not be found."]
    error = task_error("Connector c", InvalidConfigError(errors))
    assert isinstance(error, AirflowFailException)
    assert f"{errors[0]} Did you mean JsonConverter?" in str(error)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Execute an operator with the worker file as it is, on a Kafka of which nothing is asked."""
    monkeypatch.setattr(sluiceway.kafka.reachability, "_ANSWER_SECONDS", 0.2)
    monkeypatch.setattr(sluiceway.kafka.reachability, "_may_exist", lambda host: not host.endswith(".invalid"))

    def execute(of: Any, servers: str | None = "localhost:1", **kwargs: Any) -> None:
        path = tmp_path / "worker.properties"
        if servers is not None:
            path.write_text(f"bootstrap.servers={servers}\n")
        monkeypatch.setenv("AIRFLOW__SLUICEWAY__WORKER_PROPERTIES", str(path))
        ti: Any = SimpleNamespace(
            dag_id="d", run_id="r", task_id="t", map_index=-1, get_dag=lambda _: SimpleNamespace(is_paused=False)
        )
        operator = of(task_id="t", **kwargs)
        (operator.poke if hasattr(operator, "poke") else operator.execute)({"ti": ti})

    return execute


@pytest.mark.parametrize(
    ("of", "given"),
    [
        (ConnectorOperator, {"connector": "c", "config": {"connector.class": "FileStreamSource", "topic": "%s"}}),
        (ConnectorOperator, {"connector": "c", "kafka_conn_id": "%s"}),
        (ApplicationOperator, {"application_name": "%s"}),
        (CreateConnectorOperator, {"config": {"name": "c", "topic": "%s"}}),
        (PauseConnectorOperator, {"connector": "%s"}),
        (ConnectorStateSensor, {"connector": "%s"}),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{{ ds }", "unexpected '}'"),
        ("{{ nothing }}", "'nothing' is undefined"),
        ("{{ 1 | nothing }}", "No filter named 'nothing'"),
    ],
)
def test_a_template_with_a_mistake_fails_the_task_at_once(of: Any, given: dict[str, Any], template: str, why: str) -> None:
    dag = DAG("d", schedule=None)
    task = of(task_id="t", dag=dag, **json.loads(json.dumps(given).replace("%s", template)))
    with pytest.raises(AirflowFailException, match=f"Task t: a template in its arguments cannot be rendered: {why}"):
        task.render_template_fields({"ds": "2026-01-01"}, dag.get_template_env())


def test_a_mapped_task_with_a_mistake_in_a_template_fails_at_once() -> None:
    dag = DAG("d", schedule=None)
    mapped = ConnectorOperator.partial(task_id="t", dag=dag).expand(connector=["{{ nothing }}"])
    with pytest.raises(AirflowFailException, match="'nothing' is undefined"):
        mapped.render_template_fields(
            {"ti": SimpleNamespace(map_index=0), "expanded_ti_count": 1, "dag": dag, "dag_run": SimpleNamespace(conf={})},  # type: ignore[typeddict-item]
            dag.get_template_env(),
        )


_OPERATORS = [
    (ConnectorOperator, {"connector": "c"}),
    (ApplicationOperator, {"application_name": "a"}),
    (PauseConnectorOperator, {"connector": "c"}),
    (ConnectorStateSensor, {"connector": "c", "poke_interval": 0.1}),
]


@pytest.mark.parametrize(("of", "given"), _OPERATORS, ids=lambda each: getattr(each, "__name__", ""))
@pytest.mark.parametrize(
    ("servers", "more", "message"),
    [
        (None, {}, "Cannot read the properties file .*worker.properties: No such file"),
        (_NO_HOST, {}, f"Cannot reach Kafka at {_NO_HOST}: no such host. Check bootstrap.servers"),
        ("localhost:99999", {}, "'localhost:99999' is no address of a broker. It must be host:port"),
        ("localhost:1", {"kafka_conn_id": "missing"}, "Airflow has no connection 'missing'"),
    ],
    ids=["worker file", "host", "port", "connection"],
)
def test_each_operator_and_sensor_fails_at_once(
    run: Run, of: Any, given: dict[str, Any], servers: str | None, more: dict[str, Any], message: str
) -> None:
    with pytest.raises(AirflowFailException, match=message):
        run(of, servers, **given, **more)


@pytest.mark.parametrize(("of", "given"), _OPERATORS)
def test_brokers_that_do_not_answer_are_named_and_tried_again(run: Run, of: Any, given: dict[str, Any]) -> None:
    servers = f"localhost:{free_port()}"
    with pytest.raises(KafkaClientError, match=f"Cannot reach Kafka at {servers}: .*Check bootstrap.servers"):
        run(of, servers, **given)


class _Kafka:
    """Internal topics that show what is stored, and validate configs as the herder does."""

    def __init__(self) -> None:
        self.store = MemoryConfigBackingStore()

    def driver(self, name: str) -> Any:
        return SimpleNamespace(lives=False, owner=None)

    def entry(self, name: str) -> Any:
        return self.store.snapshot().entry(name)

    def ensure_config(self, name: str, config: dict[str, str]) -> None:
        from sluiceway.config.worker import WorkerConfig
        from sluiceway.herder import Herder

        worker = WorkerConfig.of({"bootstrap.servers": "nowhere:1", "group.id": "g", "config.storage.topic": "c"})
        Herder(worker, self.store, None, None).put_config(name, config)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({**SOURCE, "connector.class": "NoSuchSink"}, "NoSuchSink"),
        ({"name": "c", "topics": "t"}, "its config has no connector.class"),
        (SOURCE, "is a source: use SourceConnectorOperator"),
        ({"name": "c", "connector.class": "FileStreamSink"}, "topics"),
        ({"name": "c", "connector.class": "FileStreamSink", "topics": "t", "tasks.max": 0}, "tasks.max"),
        ({"name": "c", "connector.class": "FileStreamSink", "topics": "t", "value.converter": "Nope"}, "Nope"),
        ("/nowhere/c.json", "Cannot read the connector file /nowhere/c.json"),
        ("two.json", "holds 2 connectors"),
        ("broken.json", "broken.json"),
    ],
    ids=str,
)
def test_a_mistake_in_the_config_fails_at_once_and_stores_nothing(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, config: Any, message: str
) -> None:
    kafka = _Kafka()
    (tmp_path / "two.json").write_text(json.dumps([SOURCE, {**SOURCE, "name": "d"}]))
    (tmp_path / "broken.json").write_text("{")
    monkeypatch.setattr(SinkConnectorOperator, "_internal_topics", lambda *_: kafka)
    monkeypatch.chdir(tmp_path)
    name = None if isinstance(config, dict) else "x"
    with pytest.raises(AirflowFailException, match=message):
        run(SinkConnectorOperator, connector=name, config=config)
    assert kafka.store.snapshot().connectors == {}


def test_a_database_that_does_not_answer_is_tried_again() -> None:
    from sluiceway.config.worker import WorkerConfig
    from sluiceway.herder.validation import checked

    worker = WorkerConfig.of({"bootstrap.servers": "nowhere:1", "group.id": "g", "config.providers": "env",
                              "config.providers.env.class": "EnvVarConfigProvider"})  # fmt: skip
    port = str(free_port())
    url = {"connection.url": f"jdbc:postgresql://127.0.0.1:{port}/db", "connection.password": "${env::CONNECTOR_PASSWORD}"}
    captured = {"database.hostname": "127.0.0.1", "database.port": port, "database.user": "u", "topic.prefix": "p"}
    captured["database.password"] = "${env::CONNECTOR_PASSWORD}"
    for config in (
        {"connector.class": "JdbcSource", "mode": "bulk", "topic.prefix": "p", **url},
        {"connector.class": "PostgresConnector", "database.dbname": "d", **captured},
        {"connector.class": "MariaDbConnector", "database.server.id": "7", "schema.history.internal.kafka.topic": "h",
         "schema.history.internal.kafka.bootstrap.servers": "nowhere:1", **captured},
    ):  # fmt: skip
        with pytest.raises(ConnectError) as raised:
            checked({"name": "c", **config}, worker)
        assert isinstance(raised.value, InvalidConfigError)
        assert not is_mistake(raised.value), raised.value
