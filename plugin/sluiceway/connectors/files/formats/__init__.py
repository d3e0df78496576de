"""File formats: Parquet, ORC, Avro, CSV, JSON lines, text and bytes."""

from sluiceway.connectors.files.formats.base import FileWriter, Format
from sluiceway.connectors.files.formats.registry import FORMATS, format_named

__all__ = ["FORMATS", "FileWriter", "Format", "format_named"]
