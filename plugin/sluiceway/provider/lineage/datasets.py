"""Which data sets a connector reads and writes, under OpenLineage's names. No I/O, and OpenLineage itself stays optional.

Naming: https://openlineage.io/docs/spec/naming. A data set is only named when the config says where it is without a secret being
looked up; topics that are found by a pattern are not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import urlsplit

from sluiceway.config.connector import TOPICS
from sluiceway.config.parsing import parse_list

# Keys of Kafka Connect's connectors, whatever class reads them.
_TOPIC, _KAFKA_TOPIC, _FILE, _DIRECTORIES = "topic", "kafka.topic", "file", ("input.path", "output.path")
_JDBC_URL, _TABLES, _TABLE_FORMAT, _PREFIX = (
    "connection.url",
    ("table.whitelist", "table.include.list"),
    "table.name.format",
    "topic.prefix",
)
_MIRROR = "source.cluster.bootstrap.servers"
_TOPIC_IN_FORMAT = "${topic}"

_DEFAULT_PORTS = {"postgresql": 5432, "mysql": 3306, "mariadb": 3306, "sqlserver": 1433, "oracle": 1521}
_SCHEMES = {"postgresql": "postgres", "sqlserver": "mssql"}
_PLAIN_TOPIC = re.compile(r"[A-Za-z0-9._-]+")


class DataSet(NamedTuple):
    """A data set: the data source's URI, and its name there."""

    namespace: str
    name: str


class Lineage(NamedTuple):
    """What a connector reads and what it writes."""

    inputs: tuple[DataSet, ...]
    outputs: tuple[DataSet, ...]


def lineage(config: Mapping[str, str], *, bootstrap: str, sink: bool) -> Lineage:
    """Return both ends of a connector; ``bootstrap`` is the brokers' list of the worker's cluster."""
    inside = tuple(kafka(bootstrap, topic) for topic in _topics(config, sink=sink))
    outside = tuple(each for find in _OUTSIDE for each in find(config, sink))
    return Lineage(inside, outside) if sink else Lineage(outside, inside)


def kafka(bootstrap: str, topic: str) -> DataSet:
    """Return a topic's name: its namespace is the first of the brokers that one connects to."""
    return DataSet(f"kafka://{first_server(bootstrap)}", topic)


def first_server(bootstrap: str) -> str:
    """Return the first of ``bootstrap.servers``, without the name of a listener."""
    return bootstrap.split(",")[0].strip().rpartition("//")[2]


def _topics(config: Mapping[str, str], *, sink: bool) -> list[str]:
    if sink:
        return parse_list(config.get(TOPICS))
    if _MIRROR in config:
        alias = config.get("source.cluster.alias", "")
        return [f"{alias}{config.get('replication.policy.separator', '.')}{topic}" for topic in _mirrored(config)]
    if topic := config.get(_TOPIC) or config.get(_KAFKA_TOPIC):
        return [topic]
    return [config.get(_PREFIX, "") + table.rpartition(".")[2] for table in _tables(config)] if _JDBC_URL in config else []


def _file(config: Mapping[str, str], _sink: bool) -> Iterator[DataSet]:
    for path in (config.get(_FILE), *(config.get(key) for key in _DIRECTORIES)):
        if path and not _refers(path) and PurePosixPath(path).is_absolute():
            yield DataSet("file", path)


def _database(config: Mapping[str, str], sink: bool) -> Iterator[DataSet]:
    url = config.get(_JDBC_URL, "")
    scheme, _, rest = url.removeprefix("jdbc:").partition("://")
    if not rest or _refers(url):
        return
    try:
        place = urlsplit(f"//{rest.partition(';')[0]}")
        host, port = place.hostname, place.port or _DEFAULT_PORTS.get(scheme)
    except ValueError:  # what cannot be read is not named; the connector itself will say what is wrong
        return
    database = place.path.strip("/")
    authority = f"{host}:{port}" if port else str(host)
    for table in _sink_tables(config) if sink else _tables(config):
        # PostgreSQL's tables have a schema, which is "public" unless said otherwise.
        named = f"public.{table}" if scheme == "postgresql" and "." not in table else table
        parts = (database, named) if database and not named.startswith(f"{database}.") else (named,)
        yield DataSet(f"{_SCHEMES.get(scheme, scheme)}://{authority}", ".".join(parts))


def _mirror(config: Mapping[str, str], sink: bool) -> Iterator[DataSet]:
    bootstrap = config.get(_MIRROR)
    if bootstrap and not sink and not _refers(bootstrap):
        yield from (kafka(bootstrap, topic) for topic in _mirrored(config))


_OUTSIDE: tuple[Callable[[Mapping[str, str], bool], Iterator[DataSet]], ...] = (_file, _database, _mirror)


def _mirrored(config: Mapping[str, str]) -> list[str]:
    """Return the topics of a mirror that are names; each may be a pattern."""
    return [topic for topic in parse_list(config.get(TOPICS)) if _PLAIN_TOPIC.fullmatch(topic)]


def _tables(config: Mapping[str, str]) -> list[str]:
    return [table.replace('"', "") for key in _TABLES for table in parse_list(config.get(key))]


def _sink_tables(config: Mapping[str, str]) -> list[str]:
    name = config.get(_TABLE_FORMAT, _TOPIC_IN_FORMAT)
    return [name.replace(_TOPIC_IN_FORMAT, topic) for topic in parse_list(config.get(TOPICS))]


def _refers(text: str) -> bool:
    """Whether a value is, or holds, a reference that only the driver looks up."""
    return "${" in text
