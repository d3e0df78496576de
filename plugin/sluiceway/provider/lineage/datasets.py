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
from urllib.parse import quote, urlsplit

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
_PATH, _TOPICS_DIR, _FORMAT = "path", "topics.dir", "format"
_FILE_SYSTEMS = ("hdfs.url",)
_BUCKETS = {"s3.bucket.name": "s3", "gcs.bucket.name": "gs"}
_CONTAINER, _ACCOUNT = "azblob.container.name", "azblob.account.name"
_DELTA_PATH, _DELTA_TABLES = "delta.path", "delta.tables"
_ICEBERG_URI, _ICEBERG_CATALOG, _ICEBERG_TABLES = "iceberg.catalog.uri", "iceberg.catalog", "iceberg.tables"
_SOURCE_CLUSTER = "source.cluster.bootstrap.servers"
_TOPIC_IN_FORMAT = "${topic}"

_DEFAULT_PORTS = {"postgresql": 5432, "mysql": 3306, "mariadb": 3306, "sqlserver": 1433, "oracle": 1521}
_SCHEMES = {"postgresql": "postgres", "sqlserver": "mssql"}
_DATABASES = ("postgres", "mysql", "mariadb", "mssql", "oracle")
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


def _stored(config: Mapping[str, str], sink: bool) -> Iterator[DataSet]:
    """Yield the folders that sinks write files to, one for each topic, and the path of Spark's."""
    roots = [config[_PATH]] if config.get(_PATH) else []
    roots += [config[key] for key in _FILE_SYSTEMS if config.get(key)]
    roots += [f"{scheme}://{config[key]}" for key, scheme in _BUCKETS.items() if config.get(key)]
    if config.get(_CONTAINER) and config.get(_ACCOUNT):
        roots += [f"abfss://{config[_CONTAINER]}@{config[_ACCOUNT]}.dfs.core.windows.net"]
    folder = config.get(_TOPICS_DIR, "topics")
    if not sink or _FORMAT in config:
        folders = [""] if sink else []
    else:
        folders = [f"{folder}/{topic}" for topic in _list(config.get(TOPICS, ""))]
    yield from (each for root in roots for below in folders if (each := _below(root, below)) is not None)


def _tables_of_lakes(config: Mapping[str, str], sink: bool) -> Iterator[DataSet]:
    """Yield the tables that sinks write in Delta's and Iceberg's format."""
    if not sink:
        return
    for table in _list(config.get(_DELTA_TABLES, "")):
        if (found := _below(config.get(_DELTA_PATH, ""), table.replace(".", "/"))) is not None:
            yield found
    catalog = config.get(_ICEBERG_URI, "")
    address = first_server(catalog).rpartition("@")[2].partition("/")[0] or config.get(_ICEBERG_CATALOG, "iceberg")
    if not _refers(catalog) and not _refers(address):
        yield from (DataSet(f"iceberg://{address}", table) for table in _list(config.get(_ICEBERG_TABLES, "")))


def _below(root: str, folder: str) -> DataSet | None:
    """Return a folder below a path or URL; None if its place is not known."""
    scheme, _, rest = root.rpartition("://")
    if _refers(root) or _refers(folder):
        return None
    if scheme in ("", "file"):
        path = f"{rest.rstrip('/')}/{folder}".rstrip("/")
        return DataSet("file", path) if PurePosixPath(path).is_absolute() else None
    authority, _, path = rest.rpartition("@")[2].partition("/") if scheme != "abfss" else rest.partition("/")
    if not authority:
        return None
    slash = "/" if scheme in ("hdfs", "viewfs", "sftp") else ""
    return DataSet(f"{scheme}://{authority}", slash + "/".join(part for part in (path.strip("/"), folder) if part))


def uri(data_set: DataSet) -> str:
    """Return the URI of a data set for Airflow's assets: those of databases have database, schema and table in their path."""
    scheme = data_set.namespace.partition("://")[0]
    if data_set.namespace == "file":
        return f"file://{quote(data_set.name)}"
    name = data_set.name.replace(".", "/") if scheme in _DATABASES else data_set.name
    return f"{data_set.namespace}/{quote(name.lstrip('/'))}"


_EXTERNAL: tuple[Callable[[Mapping[str, str], bool], Iterator[DataSet]], ...] = (
    _file,
    _database,
    _source_cluster,
    _stored,
    _tables_of_lakes,
)


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
