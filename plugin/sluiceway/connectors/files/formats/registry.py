"""Formats by the names in ``format.class``. Each is imported when a task starts, because of its packages."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from sluiceway.connectors.files.formats.base import Format
from sluiceway.errors import MissingToolError
from sluiceway.installation import install_command

_PACKAGE = "sluiceway.connectors.files.formats"
FORMATS: Mapping[str, str] = {
    "ParquetFormat": f"{_PACKAGE}.parquet",
    "OrcFormat": f"{_PACKAGE}.orc",
    "AvroFormat": f"{_PACKAGE}.avro",
    "CsvFormat": f"{_PACKAGE}.csv",
    "JsonFormat": f"{_PACKAGE}.lines",
    "TextFormat": f"{_PACKAGE}.lines",
    "BytesFormat": f"{_PACKAGE}.lines",
}


def format_named(name: str, options: Mapping[str, str]) -> Format:
    """Return a format. Raises MissingToolError if a package is missing."""
    try:
        cls: type[Format] = getattr(importlib.import_module(FORMATS[name]), name)
    except ModuleNotFoundError as error:
        raise MissingToolError(f"{name} needs the package {error.name}. Run: {install_command('files')}.") from error
    return cls(options)
