"""Names of Connect's schemas as Avro's and Protobuf's names."""

from __future__ import annotations

import re
from urllib.parse import quote_plus

_INVALID = re.compile(r"[^A-Za-z0-9_]")


def split_name(full_name: str) -> tuple[str | None, str]:
    """Return the namespace (None without a dot) and the last part of a dotted name."""
    namespace, dot, name = full_name.rpartition(".")
    return (namespace if dot else None), name


def scrub(name: str, *, underscore_may_start: bool) -> str:
    """Return a name in which what Avro or Protobuf refuses is replaced, as ``scrub.invalid.names`` asks for.

    It is URL-encoded, gets an ``x`` in front where it does not start with a letter, and ``_`` for whatever is left over.
    """
    encoded = quote_plus(name, safe="*").replace("~", "%7E")
    first = encoded[:1]
    if not (first.isascii() and (first.isalpha() or (underscore_may_start and first == "_"))):
        encoded = "x" + encoded
    return _INVALID.sub("_", encoded)
