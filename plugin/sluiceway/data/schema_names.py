"""Converts names of Connect schemas to valid Avro and Protobuf names."""

from __future__ import annotations

import re
from urllib.parse import quote_plus

_INVALID = re.compile(r"[^A-Za-z0-9_]")


def split_name(full_name: str) -> tuple[str | None, str]:
    """Return the namespace (None if there is no dot) and the last part of a dotted name."""
    namespace, dot, name = full_name.rpartition(".")
    return (namespace if dot else None), name


def scrub(name: str, *, underscore_may_start: bool) -> str:
    """Return a valid name, for ``scrub.invalid.names``.

    URL-encode the name, prefix it with ``x`` unless its first character is valid, and replace other invalid characters by
    ``_``.
    """
    encoded = quote_plus(name, safe="*").replace("~", "%7E")
    first = encoded[:1]
    if not (first.isascii() and (first.isalpha() or (underscore_may_start and first == "_"))):
        encoded = "x" + encoded
    return _INVALID.sub("_", encoded)
