"""The Iceberg sink with Iceberg's REST catalog server."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sluiceway.api import TopicPartition
from sluiceway.connectors.iceberg import IcebergSinkConnector
from sluiceway.connectors.iceberg.store import OpenedCatalog
from sluiceway.connectors.tables.store import UnreachableError
from support.eventually import eventually
from support.jdbc_sink import TaskProcess, fill, person
from support.kafka import Kafka
from support.rest_catalog import RestCatalog, only_with_token
from support.table_sink import Lake, sink_config

COUNT = 2_000
TOKEN = "iceberg.catalog.token"
TYPE = "iceberg.catalog.type"
URI = "iceberg.catalog.uri"


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestCatalog]:
    with RestCatalog(tmp_path_factory.mktemp("catalog")) as catalog:
        yield catalog


def errors(config: dict[str, str]) -> dict[str, list[str]]:
    """Return the errors that /validate reports, by key."""
    return {name: found.errors for name, found in IcebergSinkConnector.validate(config).items() if found.errors}


@pytest.mark.long
@pytest.mark.kafka
def test_two_tasks_and_a_restart_of_the_catalog(
    catalog: RestCatalog, kafka: Kafka, unique: Callable[[str], str], tmp_path: Path
) -> None:
    topic = kafka.create(unique("numbers"), 2)
    fill(kafka.bootstrap, (person(0, number, f"n{number}", topic=topic, partition=number % 2) for number in range(COUNT)))
    lake = Lake("iceberg", tmp_path, catalog.uri)
    small = {"sluiceway.flush.size": "250", "consumer.override.max.poll.records": "250"}
    config = {**sink_config(lake, topic), **small}

    def stored() -> int:
        table = lake.table(config)
        return 0 if table is None else sum(table.offset(TopicPartition(topic, number)) or 0 for number in range(2))

    configs = [{**config, "consumer.override.group.instance.id": name} for name in ("one", "other")]
    with TaskProcess(configs[0], kafka.bootstrap) as one, TaskProcess(configs[1], kafka.bootstrap) as other:
        eventually(stored, what="the first commit")
        catalog.stop()
        catalog.start()
        eventually(lambda: stored() == COUNT, what="both tasks at the end")
        assert one.alive
        assert other.alive
    assert Counter(map(str, lake.read(config).column("id").to_pylist())) == Counter(map(str, range(COUNT)))


def test_a_catalog_that_takes_requests_and_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        opened = OpenedCatalog({TYPE: "rest", URI: uri, "iceberg.catalog.rest.client.socket-timeout-ms": "200"})
        with pytest.raises(UnreachableError, match=r"iceberg: the catalog or the storage does not answer: .*read timeout=0\.2"):
            opened.catalog  # noqa: B018 (a property that connects)


@pytest.mark.long
def test_pyicebergs_own_configuration_of_the_catalog_counts(catalog: RestCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__ICEBERG__TYPE", "rest")
    monkeypatch.setenv("PYICEBERG_CATALOG__ICEBERG__URI", catalog.uri)
    assert isinstance(OpenedCatalog({TYPE: "rest"}).catalog.list_namespaces(), list)


@pytest.mark.long
def test_validate_names_the_option_that_is_wrong(catalog: RestCatalog, tmp_path: Path) -> None:
    with only_with_token(catalog.uri, "right") as uri:
        config = Lake("iceberg", tmp_path, uri).config("validate", "db.validated")
        assert errors({**config, TOKEN: "right"}) == {}
        assert list(errors({**config, TOKEN: "wrong"})) == [TOKEN]
        assert list(errors(config)) == ["iceberg.catalog.credential"]
        assert list(errors({**config, TOKEN: "right", URI: f"{uri}/elsewhere"})) == [URI]
        assert list(errors({**config, TOKEN: "right", URI: uri.removeprefix("http://")})) == [URI]
        assert list(errors({key: value for key, value in config.items() if key != URI})) == [URI]
        away = {**config, TOKEN: "right", URI: "http://127.0.0.1:1"}
        assert errors(away) == {}  # tasks wait for a catalog that is away
