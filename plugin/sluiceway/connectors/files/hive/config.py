"""Defines the keys of the Hive integration, whose names and meanings are those of Confluent's sinks, and checks them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree

from sluiceway.config.definition import ConfigDef, ConfigValue, Importance, Type
from sluiceway.config.validators import Check, NonEmptyString
from sluiceway.connectors.files import keys
from sluiceway.connectors.files.common_config import flag, text
from sluiceway.connectors.files.partitioners import FieldPartitioner, Partitioner, TimeBasedPartitioner
from sluiceway.connectors.files.store_config import ignored, only
from sluiceway.errors import ConfigError, ConnectError

Values = Mapping[str, ConfigValue]

FORMATS = ("ParquetFormat", "AvroFormat", "OrcFormat")
TOPIC = "${topic}"
_GROUP = "Hive"
_DEFAULT_PORT = 9083
_URIS, _SASL = "hive.metastore.uris", "hive.metastore.sasl.enabled"
_NAME = re.compile(r"\w+")


def addresses(uris: str) -> list[tuple[str, int]]:
    """Return the hosts and ports of ``thrift://host:port``, separated by commas. Raises ValueError."""
    found = []
    for uri in filter(None, (part.strip() for part in uris.split(","))):
        parts = urlsplit(uri)
        if parts.scheme != "thrift" or not parts.hostname:
            raise ValueError(f"{uri} is not of the form thrift://host:port")
        found.append((parts.hostname, parts.port or _DEFAULT_PORT))
    return found


def _uris(name: str, value: ConfigValue) -> None:
    try:
        addresses(str(value))
    except ValueError as error:
        raise ConfigError(name, value, str(error)) from error


def _table(name: str, value: ConfigValue) -> None:
    if TOPIC not in str(value):
        raise ConfigError(name, value, f"has to contain {TOPIC}, because each topic has a table of its own")


HIVE = ConfigDef(
    [
        flag(
            name=keys.HIVE_INTEGRATION,
            default=False,
            importance=Importance.HIGH,
            group=_GROUP,
            doc="Whether to keep an external table for each topic in a Hive metastore: it is created with the first files, gets "
            "a partition for each new folder, and a column for each new field. For Parquet, Avro and ORC files.",
        ),
        text(
            name=keys.HIVE_URIS,
            default="",
            validator=Check(_uris, "thrift://host:port, ..."),
            importance=Importance.HIGH,
            group=_GROUP,
            doc="URIs of the metastore: thrift://host:port. Several are separated by commas and tried in order.",
        ),
        text(
            name=keys.HIVE_CONF_DIR,
            default="",
            importance=Importance.HIGH,
            group=_GROUP,
            doc="Folder with hive-site.xml on the machines of the tasks, which has the URIs if hive.metastore.uris is empty.",
        ),
        text(
            name=keys.HIVE_DATABASE,
            default="default",
            validator=NonEmptyString(),
            importance=Importance.HIGH,
            group=_GROUP,
            doc="Database of the tables. It is created if it does not exist.",
        ),
        text(
            name=keys.HIVE_TABLE,
            default=TOPIC,
            validator=Check(_table, f"a text with {TOPIC}"),
            importance=Importance.LOW,
            group=_GROUP,
            doc=f"Name of a topic's table, with {TOPIC} for the topic. Characters that are not letters, digits or underscores "
            "become underscores.",
        ),
        ignored("hive.home", Type.STRING, "", "The client needs no Hive installation."),
        only("hive.logical.types.enabled", Type.BOOLEAN, True, "columns have the types of the files"),
    ]
)


@dataclass(frozen=True, slots=True)
class HiveOptions:
    """The typed values of the keys; see their definitions."""

    uris: str
    conf_dir: str
    database: str
    table: str

    def addresses(self) -> list[tuple[str, int]]:
        """Return the metastore's hosts and ports. Reads hive-site.xml if needed. Raises ConnectError."""
        settings = site_settings(self.conf_dir) if self.conf_dir else {}
        if settings.get(_SASL, "").strip().lower() == "true":
            raise ConnectError(f"hive-site.xml in {self.conf_dir} has {_SASL}=true: a metastore with Kerberos is not supported.")
        try:
            found = addresses(self.uris or settings.get(_URIS, ""))
        except ValueError as error:
            raise ConnectError(f"{_URIS} in {self.conf_dir}/hive-site.xml: {error}.") from error
        if not found:
            raise ConnectError(f"hive-site.xml in {self.conf_dir} has no {_URIS}. Set {keys.HIVE_URIS}.")
        return found

    def table_of(self, topic: str) -> str:
        """Return the name of a topic's table."""
        return re.sub(r"[^a-z0-9_]", "_", self.table.replace(TOPIC, topic).lower())


def hive_options(values: Values) -> HiveOptions | None:
    """Return the typed values, None without Hive integration."""
    if not values.get(keys.HIVE_INTEGRATION):
        return None
    names = (keys.HIVE_URIS, keys.HIVE_CONF_DIR, keys.HIVE_DATABASE, keys.HIVE_TABLE)
    uris, conf_dir, database, table = (str(values[name]) for name in names)
    return HiveOptions(uris, conf_dir, database.lower(), table)


def hive_conflicts(values: Values, file_format: str, partitioner: Partitioner) -> dict[str, str]:
    """Return the errors of keys that do not go with the Hive integration, by the key to change."""
    if not values.get(keys.HIVE_INTEGRATION):
        return {}
    problems = {}
    if file_format not in FORMATS:
        problems[keys.HIVE_INTEGRATION] = f"is supported for {', '.join(FORMATS)}, not for {file_format}"
    if values[keys.SCHEMA_COMPATIBILITY] == "NONE":
        problems[keys.SCHEMA_COMPATIBILITY] = "Hive Integration requires schema compatibility to be BACKWARD, FORWARD or FULL"
    if not values[keys.HIVE_URIS] and not values[keys.HIVE_CONF_DIR]:
        problems[keys.HIVE_URIS] = f"is needed with {keys.HIVE_INTEGRATION}, such as thrift://metastore:9083"
    if values.get(keys.AVRO_ENHANCED) and file_format == "AvroFormat":
        problems[keys.AVRO_ENHANCED] = f"does not go with {keys.HIVE_INTEGRATION}: Hive's tables have strings instead of enums"
    if values[keys.DIRECTORY_DELIM] != "/":
        problems[keys.DIRECTORY_DELIM] = f"has to be / with {keys.HIVE_INTEGRATION}: a partition is a folder"
    if isinstance(partitioner, FieldPartitioner) and not _are_names(partitioner.fields):
        problems[keys.PARTITION_FIELD] = (
            f"has to be different names of letters, digits and underscores with {keys.HIVE_INTEGRATION}: they become columns"
        )
    if isinstance(partitioner, TimeBasedPartitioner) and not _has_columns(partitioner.folder(0)):
        problems[keys.PATH_FORMAT] = f"needs a name for each folder with {keys.HIVE_INTEGRATION}, such as 'year'=YYYY/'month'=MM"
    return problems


def _are_names(names: Sequence[str]) -> bool:
    return all(map(_NAME.fullmatch, names)) and len({name.lower() for name in names}) == len(names)


def _has_columns(folder: str) -> bool:
    parts = [part.partition("=") for part in folder.split("/")]
    return _are_names([name for name, _, _ in parts]) and all(value for _, _, value in parts)


def site_settings(folder: str) -> dict[str, str]:
    """Return the settings in a folder's hive-site.xml. Raises ConnectError."""
    path = Path(folder) / "hive-site.xml"
    try:
        root = ElementTree.fromstring(path.read_bytes())  # noqa: S314 (the administrator's own file)
    except (OSError, ElementTree.ParseError) as error:
        raise ConnectError(f"Cannot read {path}: {error}. Check {keys.HIVE_CONF_DIR}, or set {keys.HIVE_URIS}.") from error
    return {each.findtext("name", "").strip(): each.findtext("value", "").strip() for each in root.iter("property")}


REFUSED = ConfigDef(
    [
        only(
            keys.HIVE_INTEGRATION,
            Type.BOOLEAN,
            False,
            "tables are registered for Parquet, Avro and ORC files. Create an external table over the topic's folder once, and "
            "add new partitions with a scheduled MSCK REPAIR TABLE in spark.sql",
        )
    ]
)
"""The keys of sinks whose files Hive cannot read by the schemas of records."""
