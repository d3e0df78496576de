"""Defines the keys of the Delta sink, which are those of Apache's Iceberg sink below ``delta.``, and of the Delta source."""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.config.validators import NonEmptyString
from sluiceway.connectors.tables.config import PARTITION_BY, partition_fields, shared_keys
from sluiceway.connectors.tables.source.config import shared_keys as source_keys

PREFIX = "delta."
PATH = "delta.path"
STORAGE = "storage."

LOCATION = ConfigDef(
    [
        ConfigKey(
            name=PATH,
            type=Type.STRING,
            validator=NonEmptyString(),
            importance=Importance.HIGH,
            group="Storage",
            doc="The folder of the tables, such as /lake, hdfs://host:8020/lake, s3://bucket/lake, gs://bucket/lake or "
            "abfss://container@account/lake. The table a.b is the folder a/b in it. Keys below delta.storage. are delta-rs's "
            "storage options, such as delta.storage.AWS_REGION; by default the machine's own credentials are used.",
        )
    ]
)

SINK = LOCATION + ConfigDef(shared_keys(PREFIX, "Delta"))
SOURCE = LOCATION + ConfigDef(source_keys(PREFIX, "Delta"))


def problems(config: Mapping[str, str]) -> dict[str, str]:
    """Return the errors of partition fields, by key."""
    found: dict[str, str] = {}
    for name, value in config.items():
        if name == PREFIX + PARTITION_BY or (name.startswith("delta.table.") and name.endswith(".partition-by")):
            bad = [field for field in partition_fields(value) if "(" in field]
            if bad:
                found[name] = (
                    f"must name columns, but {', '.join(bad)} is a transform, which Delta does not have; add a field for it"
                )
        if name.endswith(".commit-branch") or name == "delta.tables.default-commit-branch":
            found[name] = "Delta tables have no branches"
    return found
