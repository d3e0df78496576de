"""Avro's container files, read by rows. Runs on executors."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO

from sluiceway.connectors.folder.parts import Part
from sluiceway.discovery import converter_class
from sluiceway.errors import DataError, MissingToolError
from sluiceway.installation import install_command

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray
    from sluiceway.data import Schema


def open_avro(raw: BinaryIO, batch_rows: int, part: Part | None = None) -> tuple[Schema, Iterator[AnyArray]]:
    """Return the schema of a file's values, and its values in order, or those of the blocks that begin in a part's bytes.

    Raises DataError for a file that is none of Avro's, or whose schema Connect lacks.
    """
    try:
        import fastavro
    except ImportError as error:
        raise MissingToolError(
            f"Avro files need a Python package that is not installed ({error}). Run: {install_command('files')} in the Python "
            "environment of the tasks."
        ) from error
    try:
        blocks = fastavro.block_reader(raw)
    except (ValueError, EOFError, KeyError) as error:
        raise DataError(f"is no Avro file: {error}") from error
    converter: Any = converter_class("AvroConverter")
    schema, read = converter.datum_reader(blocks.metadata["avro.schema"])
    if schema is None:
        raise DataError("has values of Confluent's type Anything, which have no schema")
    return schema, _arrays(schema, _values(blocks, read, part), batch_rows)


def _values(blocks: Any, read: Callable[[io.BytesIO], Any], part: Part | None) -> Iterator[Any]:
    try:
        for block in blocks:
            if part is not None and not part.has(block.offset):
                if block.offset < part.end:
                    continue
                return
            for _ in range(block.num_records):
                yield read(block.bytes_)
    except (ValueError, EOFError, IndexError, KeyError, TypeError) as error:
        raise DataError(f"is damaged: {error}") from error


def _arrays(schema: Schema, values: Iterator[Any], batch_rows: int) -> Iterator[AnyArray]:
    from sluiceway.columns.arrays import to_array

    while batch := list(islice(values, batch_rows)):
        yield to_array(schema, batch)
