"""Secrets are planted in configs of the built-in connectors and in the worker's file; no answer, log line, or topic may show one.

Secrets that a config refers to appear nowhere. Those that it holds itself are in its config, as in Kafka Connect, and in no
error, log, generated DAG, or data set of lineage. What Spark, command lines, and environments show is searched by
``tests/integration/test_spark_secrets.py``, and a whole stack by ``tests/airflow/test_canaries.py``.
"""

from __future__ import annotations

import logging
import uuid
from pathlib import Path
from typing import Any

import pytest

from sluiceway.config.definition import Type
from sluiceway.discovery import connector_class, installed_plugins, is_sink
from sluiceway.provider.dag_bundle.dag_keys import dag_config
from sluiceway.provider.lineage.datasets import lineage
from sluiceway.storage import codec
from support.rest_replay import Connect

# Their validation waits for a service of the internet, or for a name server.
_REMOTE = ("Gcs", "Azure", "S3", "Hdfs", "Iceberg", "Delta", "Mirror")
_SLICE = ("JdbcSourceConnector", "PostgresConnector", "FileStreamSinkConnector")
CONNECTORS = [
    pytest.param(name, marks=() if name in _SLICE else pytest.mark.long)
    for name in sorted(each.__name__ for each in installed_plugins("sluiceway.connectors"))
    if not any(text in name for text in _REMOTE)
]
URLS = {
    "JdbcSourceConnector": "jdbc:postgresql://user:{}@127.0.0.1:1/shop",
    "JdbcSinkConnector": "jdbc:mysql://127.0.0.1:1/shop?user=u&password={}",
    "DebeziumJdbcSinkConnector": "jdbc:mariadb://user:{}@127.0.0.1:1/shop",
}
SHARED = {
    "producer.override.sasl.jaas.config": 'Login required password="{}";',
    "consumer.override.ssl.key.password": "{}",
    "admin.override.sasl.password": "{}",
    "value.converter": "AvroConverter",
    "value.converter.schema.registry.url": "http://127.0.0.1:1",
    "value.converter.basic.auth.user.info": "user:{}",
    "transforms": "insert",
    "transforms.insert.type": "InsertHeader",
    "transforms.insert.header": "h",
    "transforms.insert.value.literal": "{}",
    "spark.hadoop.fs.s3a.secret.key": "{}",
}


def _canary() -> str:
    return f"canary{uuid.uuid4().hex}"


class Planted:
    """A Connect with secrets in a file, a variable, and its worker's file. ``seen`` is what was answered and logged."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.secrets = {place: _canary() for place in ("file", "variable", "worker", "literal")}
        secret_file = folder / "secrets.properties"
        secret_file.write_text(f"password={self.secrets['file']}\n")
        monkeypatch.setenv("CANARY_PASSWORD", self.secrets["variable"])
        self.references = {"file": f"${{file:{secret_file}:password}}", "variable": "${env:CANARY_PASSWORD}"}
        self.connect = Connect(
            {
                "config.providers": "file,env",
                "config.providers.file.class": "FileConfigProvider",
                "config.providers.env.class": "EnvVarConfigProvider",
                "config.providers.env.param.allowlist.pattern": "CANARY_.*",
                "sasl.jaas.config": f'Login required password="{self.secrets["worker"]}";',
                "ssl.key.password": self.secrets["worker"],
                "producer.sasl.password": self.secrets["worker"],
                "listeners.https.ssl.key.password": self.secrets["worker"],
            }
        )
        self.seen: list[str] = []
        self.errors: list[str] = []

    def config(self, name: str, secret: str) -> dict[str, str]:
        """Return a config of a connector with a secret in every place that may hold one."""
        found = connector_class(name)
        topics = {"topics": "t"} if is_sink(found) else {"topic": "t", "topic.prefix": "t"}
        own = {key.name: "{}" for key in found.config_def() if key.type is Type.PASSWORD}
        network = {"database.hostname": "127.0.0.1", "database.port": "1", "database.user": "u", "database.dbname": "d"}
        given = {**topics, **network, **SHARED, **own, **({"connection.url": URLS[name]} if name in URLS else {})}
        return {"connector.class": name, "tasks.max": "1"} | {key: text.replace("{}", secret) for key, text in given.items()}

    def ask(self, method: str, path: str, content: Any = None) -> None:
        answer = self.connect.http.request(method, path, json=content)
        text = f"{method} {path}: {answer.headers} {answer.text}"
        self.seen.append(text)
        if answer.status_code >= 400 or path.endswith("/validate"):
            self.errors.append(text)

    def drive(self, name: str, config: dict[str, str]) -> None:
        """Do with a connector what users do."""
        at = f"/connectors/{name}"
        self.ask("PUT", f"/connector-plugins/{config['connector.class']}/config/validate", {**config, "name": name})
        self.ask("POST", "/connectors", {"name": name, "config": config, "initial_state": "STOPPED"})
        plain = {"connector.class": "FileStreamSink", "topics": "t", **{key: config[key] for key in config if key in SHARED}}
        self.ask("PUT", f"{at}/config", plain)
        self.ask("PUT", f"{at}/config", {**plain, "tasks.max": "none", "file": ["bad"]})
        self.ask("PATCH", f"{at}/config", {"file": "/f", "transforms.insert.header": None})
        for path in ("", "/config", "/status", "/tasks", "/tasks-config", "/topics", "/offsets", "/history", "/history/1"):
            self.ask("GET", at + path)
        for method, path in (
            ("PUT", "/resume"),
            ("POST", "/restart"),
            ("PUT", "/pause"),
            ("PUT", "/stop"),
            ("DELETE", "/offsets"),
        ):
            self.ask(method, at + path)
        self.ask("POST", f"{at}/history/1/rollback", {})
        for path in ("/connectors?expand=info&expand=status", "/admin/loggers", "/", "/connector-plugins"):
            self.ask("GET", path)
        self.errors.append(f"lineage {lineage(config, bootstrap='b:1', sink='topics' in config)}, DAG {dag_config(config)}")
        self.seen.append(self.errors[-1])

    def topics(self) -> str:
        """Return the records of the config topic, as they would be written."""
        state = self.connect.config.snapshot()
        entries = [entry for name in state.names() if (entry := state.entry(name)) is not None]
        return "".join(str(codec.encode_connector(entry.name, entry.config)) for entry in entries)


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Planted:
    caplog.set_level(logging.DEBUG, "sluiceway")
    return Planted(tmp_path, monkeypatch)


@pytest.mark.parametrize("place", ["file", "variable"])
@pytest.mark.parametrize("name", CONNECTORS)
def test_secrets_that_a_config_refers_to_appear_nowhere(
    planted: Planted, caplog: pytest.LogCaptureFixture, name: str, place: str
) -> None:
    planted.drive("c", planted.config(name, planted.references[place]))
    shown = "\n".join([*planted.seen, caplog.text, planted.topics()])
    assert planted.references[place] in shown, "the config was stored and told"
    assert [key for key, secret in planted.secrets.items() if secret in shown] == []


@pytest.mark.parametrize("name", CONNECTORS)
def test_secrets_in_a_config_are_in_no_error_and_no_log(planted: Planted, caplog: pytest.LogCaptureFixture, name: str) -> None:
    planted.drive("c", planted.config(name, planted.secrets["literal"]))
    assert planted.secrets["literal"] not in caplog.text
    refused = [text for text in planted.errors if "/validate" not in text]
    assert [text for text in refused if planted.secrets["literal"] in text] == []
    assert planted.secrets["worker"] not in "\n".join([*planted.seen, caplog.text, planted.topics()])
