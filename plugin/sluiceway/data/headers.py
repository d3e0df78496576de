"""Record headers: ordered, and a key may come more than once (Connect's ``Header`` and ``Headers``)."""

from __future__ import annotations

from typing import Any, NamedTuple

from sluiceway.data.schema import Schema


class Header(NamedTuple):
    """One header: a key and a value with its schema (None: schemaless)."""

    key: str
    value: Any
    schema: Schema | None = None


Headers = tuple[Header, ...]
"""Headers in order; an empty tuple for none. Immutable, so that records can share them."""
