"""Declares the keys of FileStreamSource and FileStreamSink."""

from __future__ import annotations

from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.config.validators import NonEmptyString

FILE = "file"
TOPIC = "topic"
BATCH_SIZE = "batch.size"

SOURCE = ConfigDef(
    [
        ConfigKey(
            name=FILE,
            type=Type.STRING,
            default=None,
            importance=Importance.HIGH,
            doc="Path of the file to read and follow; if not set, standard input.",
        ),
        ConfigKey(
            name=TOPIC,
            type=Type.STRING,
            validator=NonEmptyString(),
            importance=Importance.HIGH,
            doc="Topic for the lines.",
        ),
        ConfigKey(
            name=BATCH_SIZE,
            type=Type.INT,
            default=2000,
            importance=Importance.LOW,
            doc="Maximum number of lines that a poll returns.",
        ),
    ]
)

SINK = ConfigDef(
    [
        ConfigKey(
            name=FILE,
            type=Type.STRING,
            default=None,
            importance=Importance.HIGH,
            doc="Path of the file to append to; if not set, standard output.",
        ),
    ]
)
