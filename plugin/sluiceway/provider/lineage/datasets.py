"""Derives from a connector's config the data sets that it reads and writes, with OpenLineage's names. No I/O.

Naming: https://openlineage.io/docs/spec/naming. Data sets whose location is a reference (``${provider:path:key}``) are left
out, topics that match a pattern, and those of a source whose transforms rename topics. OpenLineage need not be installed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from sluiceway.config.connector import TOPICS, TRANSFORMS
from sluiceway.config.parsing import parse_list

if TYPE_CHECKING:
    from sluiceway.provider.lineage.shapes import FieldShape

# Keys of Kafka Connect's connectors, whatever class reads them.
_TOPIC, _KAFKA_TOPIC, _FILE, _DIRECTORIES = "topic", "kafka.topic", "file", ("input.path", "output.path")
_JDBC_URL, _TABLES, _TABLE_FORMAT, _PREFIX = (
    "connection.url",
    ("table.whitelist", "table.include.list"),
    "table.name.format",
    "topic.prefix",
)
_SOURCE_CLUSTER = "source.cluster.bootstrap.servers"
_TOPIC_IN_FORMAT = "${topic}"

_DEFAULT_PORTS = {"postgresql": 5432, "mysql": 3306, "mariadb": 3306, "sqlserver": 1433, "oracle": 1521}
_SCHEMES = {"postgresql": "postgres", "sqlserver": "mssql"}
_SEPARATORS = frozenset("/?#;")
"""Before an at sign or a host they are of a password, of which nobody knows where it ends."""
_PLAIN_TOPIC = re.compile(r"[A-Za-z0-9._-]+")


class DataSet(NamedTuple):
    """The URI of a data source, and the name of a data set in it."""

    namespace: str
    name: str


class Description(NamedTuple):
    """The known facts of a data set: its fields, and the rows and bytes that a run has read or written."""

    fields: tuple[FieldShape, ...] = ()
    rows: int | None = None
    size: int | None = None


class Lineage(NamedTuple):
    """The data sets that a connector reads and writes, and what is known of them."""

    inputs: tuple[DataSet, ...]
    outputs: tuple[DataSet, ...]
    descriptions: Mapping[DataSet, Description] = MappingProxyType({})


def lineage(config: Mapping[str, str], *, bootstrap: str, sink: bool) -> Lineage:
    """Return the data sets that a connector reads and writes.

    Args:
        bootstrap: ``bootstrap.servers`` of the worker.
    """
    topics = tuple(kafka(bootstrap, topic) for topic in _topics(config, sink=sink))
    external = tuple(each for find in _EXTERNAL for each in find(config, sink))
    return Lineage(topics, external) if sink else Lineage(external, topics)


def kafka(bootstrap: str, topic: str) -> DataSet:
    """Return the data set of a topic; its namespace is the first server of ``bootstrap``."""
    return DataSet(f"kafka://{first_server(bootstrap)}", topic)


def first_server(bootstrap: str) -> str:
    """Return the first server of ``bootstrap.servers``, without the protocol."""
    return bootstrap.split(",")[0].strip().rpartition("//")[2]


def _topics(config: Mapping[str, str], *, sink: bool) -> list[str]:
    if sink:
        return _list(config.get(TOPICS, ""))
    if _renames_topics(config):
        return []
    if _SOURCE_CLUSTER in config:
        alias = config.get("source.cluster.alias", "")
        return [f"{alias}{config.get('replication.policy.separator', '.')}{topic}" for topic in _copied_topics(config)]
    if topic := config.get(_TOPIC) or config.get(_KAFKA_TOPIC):
        return [topic]
    return [config.get(_PREFIX, "") + table.rpartition(".")[2] for table in _tables(config)] if _JDBC_URL in config else []


def _renames_topics(config: Mapping[str, str]) -> bool:
    """Return whether a router is among the transforms: RegexRouter, EventRouter. Where it sends records depends on them."""
    types = (config.get(f"{TRANSFORMS}.{alias}.type", "") for alias in _list(config.get(TRANSFORMS, "")))
    return any(each.endswith("Router") for each in types)


def _file(config: Mapping[str, str], _sink: bool) -> Iterator[DataSet]:
    for path in (config.get(_FILE), *(config.get(key) for key in _DIRECTORIES)):
        if path and not _refers(path) and PurePosixPath(path).is_absolute():
            yield DataSet("file", path)


def _database(config: Mapping[str, str], sink: bool) -> Iterator[DataSet]:
    url = config.get(_JDBC_URL, "")
    scheme, _, rest = url.removeprefix("jdbc:").partition("://")
    login, _, rest = rest.rpartition("@")
    if not rest or _refers(url) or _SEPARATORS & {*scheme, *login}:
        return
    try:
        address = urlsplit(f"//{rest.partition(';')[0]}")
        host, port = address.hostname, address.port or _DEFAULT_PORTS.get(scheme)
    except ValueError:  # an invalid URL: the connector reports it
        return
    database = address.path.strip("/")
    authority = f"{host}:{port}" if port else str(host)
    for table in _sink_tables(config) if sink else _tables(config):
        # A table of PostgreSQL without a schema is in schema "public".
        named = f"public.{table}" if scheme == "postgresql" and "." not in table else table
        parts = (database, named) if database and not named.startswith(f"{database}.") else (named,)
        yield DataSet(f"{_SCHEMES.get(scheme, scheme)}://{authority}", ".".join(parts))


def _source_cluster(config: Mapping[str, str], sink: bool) -> Iterator[DataSet]:
    bootstrap = config.get(_SOURCE_CLUSTER)
    if bootstrap and not sink and not _refers(bootstrap):
        yield from (kafka(bootstrap, topic) for topic in _copied_topics(config))


_EXTERNAL: tuple[Callable[[Mapping[str, str], bool], Iterator[DataSet]], ...] = (_file, _database, _source_cluster)


def _copied_topics(config: Mapping[str, str]) -> list[str]:
    """Return the topics that a MirrorSource copies, without patterns."""
    return [topic for topic in _list(config.get(TOPICS, "")) if _PLAIN_TOPIC.fullmatch(topic)]


def _tables(config: Mapping[str, str]) -> list[str]:
    return [table.replace('"', "") for key in _TABLES for table in _list(config.get(key, ""))]


def _sink_tables(config: Mapping[str, str]) -> list[str]:
    name = config.get(_TABLE_FORMAT, _TOPIC_IN_FORMAT)
    return [name.replace(_TOPIC_IN_FORMAT, topic) for topic in _list(config.get(TOPICS, ""))]


def _list(text: str) -> list[str]:
    return parse_list(text)


def _refers(text: str) -> bool:
    """Return whether a value contains a reference, which only the driver resolves."""
    return "${" in text
