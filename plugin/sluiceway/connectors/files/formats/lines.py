"""Formats of lines: JSON, text and bytes. They take values of any schema and without one."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from sluiceway.api import Converter
from sluiceway.api.columns import NotColumnar, RowFormReason
from sluiceway.connectors.files.formats.base import FileWriter, Format
from sluiceway.connectors.files.keys import BYTES_EXTENSION, BYTES_SEPARATOR, DECIMAL_FORMAT, LINES_CODEC
from sluiceway.connectors.null_values import REPLACE_NULLS
from sluiceway.data import Schema, Type, java_text
from sluiceway.discovery import converter_class
from sluiceway.errors import DataError

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray
    from sluiceway.connectors.files.filesystem import Output

_BUFFER_BYTES = 1024 * 1024
_GZIP = "gzip"


class LinesWriter(FileWriter):
    """Joins lines to blocks of a megabyte."""

    def __init__(self, output: Output, codec: str) -> None:
        self._file: gzip.GzipFile | Output = gzip.GzipFile(fileobj=output, mode="wb", mtime=0) if codec == _GZIP else output
        self._blocks: list[bytes] = []
        self._bytes = 0

    def write(self, piece: bytes) -> None:
        self._blocks.append(piece)
        self._bytes += len(piece)
        if self._bytes >= _BUFFER_BYTES:
            self.flush()

    @property
    def pending(self) -> int:
        return self._bytes

    def flush(self) -> None:
        if self._blocks:
            data = b"".join(self._blocks)
            self._blocks, self._bytes = [], 0
            self._file.write(data)

    def close(self) -> None:
        self.flush()
        if isinstance(self._file, gzip.GzipFile):
            self._file.close()


class LinesFormat(Format):
    """Writes each value followed by a separator."""

    needs_schema = False
    separator = b"\n"
    _extension = ".txt"

    @property
    def extension(self) -> str:
        return self._extension + (".gz" if self.options[LINES_CODEC] == _GZIP else "")

    def open(self, output: Output, topic: str, schema: Schema | None) -> FileWriter:
        return LinesWriter(output, self.options[LINES_CODEC])

    def joined(self, lines: Sequence[bytes]) -> bytes:
        return self.separator.join([*lines, b""])


class JsonFormat(LinesFormat):
    """Values as JsonConverter writes them without schemas, one a line."""

    _extension = ".json"

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        converter: Any = converter_class("JsonConverter")()
        self._converter: Converter = converter
        self._lines: Callable[[Sequence[Any]], bytes] = converter.schemaless_lines
        self._converter.configure(
            {
                "schemas.enable": "false",
                "decimal.format": options[DECIMAL_FORMAT],
                REPLACE_NULLS: options.get(REPLACE_NULLS, "true"),
            }
        )
        self._encoders: dict[tuple[str, Schema | None], Callable[[Any], bytes | None]] = {}

    def rows(self, topic: str, schema: Schema | None, values: Sequence[Any]) -> bytes:
        if schema is None:
            return self._lines(values)
        encode = self._encoders.get((topic, schema))
        if encode is None:
            encode = self._encoders[topic, schema] = self._converter.encoder(topic, schema)
        return self.joined([encode(value) or b"null" for value in values])

    def columns(self, topic: str, schema: Schema, array: AnyArray) -> bytes:
        encode = self._converter.column_encoder(topic, schema)
        if encode is None:
            raise NotColumnar(f"JSON of {schema}", RowFormReason.SCHEMA)
        return self.joined(cast("list[bytes]", encode(array).to_pylist()))


class TextFormat(LinesFormat):
    """Values as text, one a line, in the form of Java's ``toString``."""

    def rows(self, topic: str, schema: Schema | None, values: Sequence[Any]) -> bytes:
        texts = [value if type(value) is str else java_text(value, schema) for value in values]
        return self.joined([text.encode("utf-8", "replace") for text in texts])

    def columns(self, topic: str, schema: Schema, array: AnyArray) -> bytes:
        if schema.type is not Type.STRING:
            raise NotColumnar(f"text of {schema}", RowFormReason.SCHEMA)
        return self.joined([text.encode() for text in cast("list[str]", array.to_pylist())])


class BytesFormat(LinesFormat):
    """Bytes with a separator after each record, as ByteArrayConverter delivers them."""

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self._extension = options[BYTES_EXTENSION]
        self.separator = options[BYTES_SEPARATOR].encode()

    def rows(self, topic: str, schema: Schema | None, values: Sequence[Any]) -> bytes:
        for value in values:
            if not isinstance(value, (bytes, bytearray, memoryview)):
                raise DataError(
                    "The format of bytes takes bytes only. Use value.converter=ByteArrayConverter, or write JSON files."
                )
        return self.joined([bytes(value) for value in values])

    def columns(self, topic: str, schema: Schema, array: AnyArray) -> bytes:
        if schema.type is not Type.BYTES or schema.name is not None:
            raise NotColumnar(f"bytes of {schema}", RowFormReason.SCHEMA)
        return self.joined(cast("list[bytes]", array.to_pylist()))
