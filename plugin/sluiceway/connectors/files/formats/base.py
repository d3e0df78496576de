"""The interface of formats."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from sluiceway.connectors.null_values import REPLACE_NULLS
from sluiceway.data import Schema, Type
from sluiceway.data.null_values import null_value_schema
from sluiceway.data.schema_advice import schema_advice
from sluiceway.errors import DataError

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray
    from sluiceway.connectors.files.filesystem import Output

Piece = Any
"""Converted values, ready to be written by the format that has converted them."""


class FileWriter(abc.ABC):
    """Writes one file. Raises StorageError from the output."""

    @abc.abstractmethod
    def write(self, piece: Piece) -> None:
        """Write values. They may stay in memory until ``flush`` or ``close``."""

    @property
    def pending(self) -> int:
        """The bytes in memory that ``flush`` would write."""
        return 0

    def flush(self) -> None:  # noqa: B027 (most writers keep nothing)
        """Write what is in memory."""

    @abc.abstractmethod
    def close(self) -> None:
        """Write the rest and the end of the file. The output stays open."""


class Format(abc.ABC):
    """Converts values and opens files. Lives in one task."""

    needs_schema: ClassVar[bool] = True
    """Whether a file has one schema; formats of lines take values of any schema, also without one."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """Take the format's own options, which ``config`` has validated."""
        self.options = options

    def readable(self, schema: Schema) -> Schema:
        """Return the schema with the defaults that nulls of ``schema`` are written as."""
        return null_value_schema(schema, replace=self.options.get(REPLACE_NULLS) != "false")

    @property
    @abc.abstractmethod
    def extension(self) -> str:
        """The end of the files' names."""

    @abc.abstractmethod
    def rows(self, topic: str, schema: Schema | None, values: Sequence[Any]) -> Piece:
        """Convert values of one schema. Raises DataError or NotColumnar if that is impossible for one of them."""

    @abc.abstractmethod
    def columns(self, topic: str, schema: Schema, array: AnyArray) -> Piece:
        """Convert an array without nulls. Raises NotColumnar."""

    @abc.abstractmethod
    def open(self, output: Output, topic: str, schema: Schema | None) -> FileWriter:
        """Start a file."""


def struct_schema(schema: Schema | None, kind: str) -> Schema:
    """Return a schema with columns. Raises DataError for values without a schema and for those that are not structs."""
    if schema is None:
        raise DataError(f"{kind} files need records with a schema. {schema_advice()}; or write JSON files.")
    if schema.type is not Type.STRUCT:
        raise DataError(
            f"{kind} files have columns, but the value is {schema.type.name}. Put it into a field with the transform HoistField."
        )
    if not schema.fields:
        raise DataError(f"{kind} files have columns, but the value's schema has no fields.")
    return schema
