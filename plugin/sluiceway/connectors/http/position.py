"""Knows up to which record a list was read: by the greatest cursor, and by hashes of the records that have it. No I/O."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

import orjson

from sluiceway.api import Offset
from sluiceway.connectors.http.pointers import is_scalar
from sluiceway.connectors.http.source_config import SEEN
from sluiceway.errors import DataError

log = logging.getLogger(__name__)

_MOST_SEEN = 1000
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(:\d\d)?(?:[.,](\d+))?)?\s*(?:([Zz])|([+-])(\d\d):?(\d\d)?)?", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_WHOLE = re.compile(r"-?\d{1,300}", re.ASCII)


class Moment(NamedTuple):
    """A time: seconds since the epoch, and the digits behind them."""

    seconds: int
    fraction: str

    @property
    def millis(self) -> int:
        return self.seconds * 1000 + int(f"{self.fraction}000"[:3])


def moment_of(text: str) -> Moment | None:
    """Return the time that a text in ISO 8601 has, in UTC unless it says otherwise; None if it has none."""
    found = _TIME.fullmatch(text.strip())
    if found is None:
        return None
    day, minute, second, fraction, _utc, sign, hours, minutes = found.groups()
    try:
        given = datetime.fromisoformat(f"{day}T{minute or '00:00'}{second or ':00'}+00:00")
    except ValueError:
        return None
    behind = timedelta(hours=int(hours or 0), minutes=int(minutes or 0)) * (-1 if sign == "-" else 1)
    return Moment(int((given - _EPOCH - behind).total_seconds()), (fraction or "").rstrip("0"))


def comparable(value: Any) -> tuple[str, Any]:
    """Return the kind of a cursor, and what can be compared with others of its kind. Raises DataError for no cursor."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return "number", value
    if not isinstance(value, str) or not value:
        raise DataError(f"A cursor must be a number or a text, and not {value!r}.")
    if _WHOLE.fullmatch(value):
        return "number", int(value)
    moment = moment_of(value)
    return ("text", value) if moment is None else ("time", moment)


def is_after(one: Any, other: Any) -> bool:
    """Return whether a cursor is greater than another one. Raises DataError if they are of different kinds."""
    (kind, left), (other_kind, right) = comparable(one), comparable(other)
    if kind != other_kind:
        raise DataError(f"The cursors {one!r} and {other!r} cannot be compared: one is a {kind}, the other a {other_kind}.")
    return bool(left > right)


@dataclass(frozen=True, slots=True)
class Position:
    """The values of the record with the greatest cursor, and the hashes of all records that have this cursor."""

    values: Mapping[str, Any] = field(default_factory=dict)
    seen: Sequence[str] = ()

    @classmethod
    def of(cls, offset: Offset | None) -> Position:
        """Return the position of a stored offset."""
        values = dict(offset or {})
        return cls(values, tuple(str(values.pop(SEEN, "")).split()))

    @property
    def offset(self) -> dict[str, Any]:
        return {**self.values, SEEN: " ".join(self.seen)} if self.seen else dict(self.values)

    def has(self, cursor: str, values: Mapping[str, Any], hash_: str) -> bool:
        """Return whether a record was read. Raises DataError for a cursor of another kind."""
        known = self.values.get(cursor)
        if known is None or is_after(values[cursor], known):
            return False
        return is_after(known, values[cursor]) or hash_ in self.seen

    def after(self, cursor: str, values: Mapping[str, Any], hash_: str) -> Position:
        """Return the position behind a record too. Raises DataError for a cursor of another kind."""
        known = self.values.get(cursor)
        if known is None or is_after(values[cursor], known):
            return Position({**self.values, **values}, (hash_,))
        if is_after(known, values[cursor]) or hash_ in self.seen:
            return self
        if len(self.seen) == _MOST_SEEN:
            log.warning("More than %d records have the cursor %r: some of them may be read again", _MOST_SEEN, known)
        return Position({**self.values, **values}, (*self.seen, hash_)[:_MOST_SEEN])


def hash_of(item: Any) -> str:
    """Return what tells records with one cursor apart."""
    return hashlib.blake2b(orjson.dumps(item, option=orjson.OPT_SORT_KEYS), digest_size=8).hexdigest()


def is_offset(offset: Mapping[str, Any]) -> bool:
    """Return whether an offset is one: names with values, and hashes."""
    return bool(offset) and isinstance(offset.get(SEEN, ""), str) and all(is_scalar(value) for value in offset.values())
