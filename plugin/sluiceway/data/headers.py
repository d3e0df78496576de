"""Defines record headers, which are ordered and may repeat a key (Connect's ``Header`` and ``Headers``)."""

from __future__ import annotations

from typing import Any, NamedTuple

from sluiceway.data.schema import Schema


class Header(NamedTuple):
    """A header: a key, a value, and the value's schema (None for a schemaless value)."""

    key: str
    value: Any
    schema: Schema | None = None


Headers = tuple[Header, ...]
"""Headers in order. Immutable, so that records can share them."""
