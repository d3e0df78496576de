"""Advice for records without the schema that a sink needs. No I/O."""

from __future__ import annotations

from sluiceway.errors import DataError

_PLAIN_JSON = " If you are trying to deserialize plain JSON data, set schemas.enable=false in your converter configuration."


def schema_advice(part: str = "value") -> str:
    """Return how the keys or values (``part``) get a schema."""
    return (
        "Use AvroConverter, or JsonConverter with schemas.enable=true, whose messages have a schema and a payload. If they are "
        f"plain JSON, set {part}.converter.schema.content to their schema, too"
    )


def advised(error: Exception, part: str) -> Exception:
    """Return a converter's error without its advice to do without schemas, for a sink that needs these."""
    text = str(error)
    if not isinstance(error, DataError) or not text.endswith(_PLAIN_JSON):
        return error
    return DataError(f"{text.removesuffix(_PLAIN_JSON)} This connector needs records with a schema. {schema_advice(part)}.")
