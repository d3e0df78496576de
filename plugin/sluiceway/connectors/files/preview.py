"""Shows the files and lines that a file sink would write for some records. No I/O."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from sluiceway.api import SinkRecord
from sluiceway.api.columns import NotColumnar
from sluiceway.connectors.files.formats import Format, format_named
from sluiceway.connectors.files.options import FileOptions
from sluiceway.data import java_text
from sluiceway.errors import ConnectError


def file_lines(options: FileOptions, records: Sequence[SinkRecord]) -> list[str]:
    """Return a text for each record: the file in which it would be, named as if the record were alone in it, and its content.

    Formats without lines show the value as text. Raises ConfigError for a format that is not known.
    """
    file_format, now = format_named(options.format, options.format_options), int(time.time() * 1000)
    return [_line(options, file_format, record, now) for record in records]


def _line(options: FileOptions, file_format: Format, record: SinkRecord, now: int) -> str:
    topic, partition, offset = record.topic, record.original_kafka_partition, record.original_kafka_offset
    position = f"{record.original_topic}-{partition}@{offset}"
    if record.value is None:
        how = "is skipped" if options.skip_nulls else "cannot be written"
        return f"{position} {how}, because it has no value"
    try:
        folder = options.names.folder(topic, options.partitioner.encode(record, now))
        content = _content(file_format.rows(topic, record.value_schema, [record.value]), record)
    except (ConnectError, NotColumnar) as error:
        return f"{position} cannot be written: {error}"
    name = options.names.name(record.original_topic, partition, offset, offset, file_format.extension)
    return f"{options.store.location(f'{folder}/{name}')}: {content}"


def _content(piece: Any, record: SinkRecord) -> str:
    if isinstance(piece, bytes):
        return piece.decode("utf-8", "replace").rstrip("\n")
    return java_text(record.value, record.value_schema)
