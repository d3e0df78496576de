"""Defines the keys of the Iceberg sink and the Iceberg source.

The sink's are those of Apache's sink, of which the ones for its control topic have no effect.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.connectors.iceberg.catalog import catalog_properties
from sluiceway.connectors.iceberg.partitions import partition_transforms
from sluiceway.connectors.tables.config import KEEP_NULLS, PARTITION_BY, keys_below, partition_fields, shared_keys
from sluiceway.connectors.tables.source.config import shared_keys as source_keys
from sluiceway.errors import ConfigError

PREFIX = "iceberg."
CATALOG_TYPE = "iceberg.catalog.type"
URI = "iceberg.catalog.uri"
CREDENTIAL = "iceberg.catalog.credential"
TOKEN = "iceberg.catalog.token"  # noqa: S105 (a key's name)
HADOOP_FOLDER = "iceberg.hadoop-conf-dir"
COMMIT_BRANCH = "iceberg.tables.default-commit-branch"

_CATALOG, _TABLES, _NO_EFFECT = "Catalog", "Tables", "Without effect"

_text = functools.partial(ConfigKey, type=Type.STRING, default=None, group=_CATALOG)
_secret = functools.partial(ConfigKey, type=Type.PASSWORD, default=None, group=_CATALOG, importance=Importance.MEDIUM)
_ignored = functools.partial(ConfigKey, type=Type.STRING, default=None, group=_NO_EFFECT, importance=Importance.LOW)

_CONTROL = " Accepted for configs of Apache's sink. Without effect: offsets are in the tables, so there is no control topic."

CATALOG = ConfigDef(
    [
        _text(
            name=CATALOG_TYPE,
            importance=Importance.HIGH,
            doc="The catalog's type: rest, sql (or jdbc), hive or glue. Needs PyIceberg's package for it. All keys below "
            "iceberg.catalog. are passed on to PyIceberg's catalog.",
        ),
        _text(
            name="iceberg.catalog.catalog-impl",
            importance=Importance.LOW,
            doc="The Java class of the catalog instead of its type: org.apache.iceberg.rest.RESTCatalog, "
            "org.apache.iceberg.jdbc.JdbcCatalog, org.apache.iceberg.hive.HiveCatalog or "
            "org.apache.iceberg.aws.glue.GlueCatalog.",
        ),
        _text(
            name=URI,
            importance=Importance.HIGH,
            doc="The catalog's URI; of a sql catalog, SQLAlchemy's or JDBC's URL.",
        ),
        _text(
            name="iceberg.catalog.warehouse",
            importance=Importance.HIGH,
            doc="The catalog's warehouse, or the root folder of its tables.",
        ),
        _text(name="iceberg.catalog", default="iceberg", importance=Importance.LOW, doc="The catalog's name."),
        _secret(name=CREDENTIAL, doc="The OAuth2 client id and secret of a REST catalog, separated by a colon."),
        _secret(name=TOKEN, doc="The bearer token of a REST catalog."),
        _secret(name="iceberg.catalog.jdbc.password", doc="The password of a sql catalog with a JDBC URL."),
        _secret(name="iceberg.catalog.s3.access-key-id", doc="The access key for S3; by default, the machine's own credentials."),
        _secret(name="iceberg.catalog.s3.secret-access-key", doc="The secret key for S3."),
    ]
)

SINK = CATALOG + ConfigDef(
    [
        *shared_keys(PREFIX, "Iceberg"),
        ConfigKey(
            name=PREFIX + KEEP_NULLS,
            type=Type.BOOLEAN,
            default=True,
            importance=Importance.LOW,
            group=_TABLES,
            doc="Apache's name of replace.null.with.default. Nulls are kept if one of the two is false.",
        ),
        _text(
            name=COMMIT_BRANCH,
            default="",
            group=_TABLES,
            doc="The branch to commit to; main by default. iceberg.table.<table>.commit-branch overrides it.",
        ),
        _ignored(name="iceberg.control.topic", doc="The control topic." + _CONTROL),
        _ignored(name="iceberg.control.group-id-prefix", doc="The prefix of the control topic's consumer group." + _CONTROL),
        _ignored(name="iceberg.control.commit.timeout-ms", doc="The timeout of a commit over the control topic." + _CONTROL),
        _ignored(name="iceberg.control.commit.threads", doc="The coordinator's threads." + _CONTROL),
        _ignored(
            name="iceberg.coordinator.transactional.prefix", doc="The prefix of the coordinator's transactional id." + _CONTROL
        ),
        _ignored(
            name="iceberg.coordinator.transactional.suffix", doc="The suffix of the coordinator's transactional id." + _CONTROL
        ),
        _ignored(name="iceberg.connect.group-id", doc="The consumer group whose offsets the coordinator commits." + _CONTROL),
        _text(
            name=HADOOP_FOLDER,
            importance=Importance.LOW,
            doc="The folder of Hadoop's configuration, which is refused: set the storage's keys below iceberg.catalog.",
        ),
    ]
)


SOURCE = CATALOG + ConfigDef(source_keys(PREFIX, "Iceberg"))


def catalog_problems(config: Mapping[str, str]) -> dict[str, str]:
    """Return the errors of the catalog's keys, by key."""
    found: dict[str, str] = {}
    try:
        catalog_properties(keys_below(config, "iceberg.catalog."))
    except ConfigError as error:
        found[error.name or CATALOG_TYPE] = error.message or str(error)
    if any(name.startswith("iceberg.hadoop.") or name == HADOOP_FOLDER for name in config):
        found[HADOOP_FOLDER] = (
            "Hadoop's configuration is not read; set the storage's keys below iceberg.catalog., such as s3.endpoint"
        )
    return found


def problems(config: Mapping[str, str]) -> dict[str, str]:
    """Return the errors of the catalog's and the partitions' keys, by key."""
    found = catalog_problems(config)
    for name, value in config.items():
        if name == PREFIX + PARTITION_BY or (name.startswith("iceberg.table.") and name.endswith(".partition-by")):
            try:
                partition_transforms(partition_fields(value))
            except ConfigError as error:
                found[name] = str(error)
    return found
