"""Describes changes of connectors: who made them, what they changed, and how the history topic stores them. No I/O.

A change holds no secrets: it is masked when it is described, so that the history topic holds less than the config topic.
"""

from __future__ import annotations

import enum
import json
import logging
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sluiceway.config.connector import CONNECTOR_CLASS
from sluiceway.config.masking import masked
from sluiceway.errors import DataError
from sluiceway.storage.codec import KeyValue
from sluiceway.storage.connect_json import loads
from sluiceway.storage.model import ConnectorEntry, TargetState

log = logging.getLogger(__name__)

KEPT = 50
"""The number of changes of each kind that the history of a connector keeps."""

_MAX_PARTITIONS = 500  # of one change of offsets, so that its record stays far below a topic's max.message.bytes

Edit = tuple[str | None, str | None]
"""A value before and after a change, masked. None: there was or is none."""

OffsetChange = tuple[Mapping[str, Any], Mapping[str, Any] | None, Mapping[str, Any] | None]
"""A partition with its offset before and after a change."""


class ChangeKind(enum.Enum):
    """The subject of a change. Creating and deleting a connector are changes of its config."""

    CONFIG = "config"
    STATE = "state"
    OFFSETS = "offsets"


@dataclass(frozen=True, slots=True)
class Origin:
    """The user who makes a change, and the address.

    ``user`` is a login that the server has checked if ``authenticated``; else it is what the client claims. ``address`` is the
    client's IP address, ``client`` its name and version, and ``note`` a remark, such as "rollback to version 3".
    """

    user: str | None = None
    authenticated: bool = False
    address: str | None = None
    client: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class HistoryChange:
    """A change of one connector. ``version`` counts its changes from 1; ``timestamp`` is in milliseconds since the epoch.

    ``config`` is the whole masked config after a change of the config, None if the connector was deleted; ``edits`` are its
    changed keys, none for a new connector. ``state`` is the target state before and after; a new connector has none before.
    ``offsets`` are the first 500 changed partitions of ``partitions``. ``previous`` is the masked config before, for the history
    of a connector that is older than its history.
    """

    kind: ChangeKind
    origin: Origin
    config: Mapping[str, str] | None = None
    edits: Mapping[str, Edit] = field(default_factory=dict)
    state: Edit | None = None
    offsets: Sequence[OffsetChange] = ()
    partitions: int = 0
    version: int = 0
    timestamp: int = 0
    previous: Mapping[str, str] | None = field(default=None, compare=False)

    @property
    def what(self) -> str:
        """The kind of the change, or "created" or "deleted"."""
        if self.kind is not ChangeKind.CONFIG:
            return str(self.kind.value)
        return "deleted" if self.config is None else "created" if self.state is not None else "config"


# Describing changes.


def config_change(
    entry: ConnectorEntry | None,
    config: Mapping[str, str],
    target_state: TargetState | None,
    origin: Origin,
    secrets: Collection[str],
) -> HistoryChange | None:
    """Return the change of storing a config, None if it equals the stored one. ``secrets`` are its keys of type password."""
    after = masked(config, secrets)
    if entry is None or entry.config is None:
        return HistoryChange(ChangeKind.CONFIG, origin, after, state=(None, (target_state or TargetState.STARTED).value))
    if dict(entry.config) == dict(config):
        return None
    before = masked(entry.config, secrets)
    keys = [key for key in {**before, **after} if entry.config.get(key) != config.get(key)]
    # The password keys of another class are unknown here, so its config is not kept.
    same_class = entry.config.get(CONNECTOR_CLASS) == config.get(CONNECTOR_CLASS)
    edits = {key: (before.get(key) if same_class or key == CONNECTOR_CLASS else None, after.get(key)) for key in keys}
    return HistoryChange(ChangeKind.CONFIG, origin, after, edits, previous=before if same_class else None)


def deletion(entry: ConnectorEntry | None, origin: Origin) -> HistoryChange | None:
    """Return the change of deleting a connector, None if it does not exist."""
    return None if entry is None else HistoryChange(ChangeKind.CONFIG, origin)


def state_change(entry: ConnectorEntry, state: TargetState, origin: Origin) -> HistoryChange | None:
    """Return the change of a target state, None if it is the same."""
    if entry.target_state is state:
        return None
    return HistoryChange(ChangeKind.STATE, origin, state=(entry.target_state.value, state.value))


def offsets_change(changes: Sequence[OffsetChange], origin: Origin) -> HistoryChange | None:
    """Return the change of offsets, None if all stay the same."""
    changed = [each for each in changes if each[1] != each[2]]
    if not changed:
        return None
    return HistoryChange(ChangeKind.OFFSETS, origin, offsets=tuple(changed[:_MAX_PARTITIONS]), partitions=len(changed))


def headers_of(change: HistoryChange) -> list[tuple[str, bytes]]:
    """Return the headers of a change's records on the config topic. Kafka Connect ignores headers there."""
    origin = change.origin
    fields = {"version": str(change.version), "user": origin.user, "address": origin.address, "client": origin.client}
    fields["note"] = origin.note
    return [(f"sluiceway.{name}", value.encode()) for name, value in fields.items() if value]


# Storing changes.


@dataclass(frozen=True, slots=True)
class _Stored:
    kind: ChangeKind
    timestamp: int
    value: bytes


class History:
    """The records of the history topic read so far, and those that store further changes. Not thread-safe."""

    def __init__(self) -> None:
        self._stored: dict[str, dict[int, _Stored]] = defaultdict(dict)

    def apply(self, key: bytes | None, value: bytes | None, timestamp: int) -> None:
        """Apply the next record of the topic. Ignores records of another form."""
        try:
            name, version = _key(key)
            if value is None:
                self._stored[name].pop(version, None)
            else:
                self._stored[name][version] = _Stored(ChangeKind(_fields(value)["kind"]), timestamp, value)
        except (DataError, KeyError, TypeError, ValueError) as error:
            log.debug("Ignoring a record with the key %r on the history topic: %s", key, error)

    def changes(self, name: str) -> list[HistoryChange]:
        """Return the changes of a connector, oldest first."""
        return [_decode(version, each) for version, each in sorted(self._stored.get(name, {}).items())]

    def numbered(self, name: str, change: HistoryChange) -> list[HistoryChange]:
        """Return a change with its version. The first one follows the config before it, if there was one."""
        newest = max(self._stored.get(name, {}), default=0)
        if newest or change.previous is None:
            return [replace(change, version=newest + 1)]
        unknown = Origin(note="before this history")
        return [HistoryChange(ChangeKind.CONFIG, unknown, change.previous, version=1), replace(change, version=2)]

    def records(self, name: str, changes: Sequence[HistoryChange]) -> list[KeyValue]:
        """Return the records that store numbered changes, and tombstones for those that are no longer kept."""
        made = [(_encoded_key(name, each.version), _encode(each)) for each in changes]
        removed = []
        for kind in {each.kind for each in changes}:
            versions = sorted(version for version, each in self._stored.get(name, {}).items() if each.kind is kind)
            versions += [each.version for each in changes if each.kind is kind]
            removed += [(_encoded_key(name, version), None) for version in versions[:-KEPT]]
        return [*made, *removed]


def _encoded_key(name: str, version: int) -> bytes:
    return json.dumps([name, version], separators=(",", ":"), ensure_ascii=False).encode()


def _key(key: bytes | None) -> tuple[str, int]:
    parts = loads(key or b"")
    if not isinstance(parts, list) or len(parts) != 2 or not isinstance(parts[0], str) or not isinstance(parts[1], int):
        raise DataError("It is not [name, version].")
    return parts[0], parts[1]


def _fields(value: bytes) -> dict[str, Any]:
    fields = loads(value)
    if not isinstance(fields, dict):
        raise DataError("It is not an object.")
    return fields


def _encode(change: HistoryChange) -> bytes:
    origin = change.origin
    fields: dict[str, Any] = {"kind": change.kind.value, "user": origin.user, "authenticated": origin.authenticated}
    fields |= {"address": origin.address, "client": origin.client, "note": origin.note}
    fields |= {"config": change.config, "edits": dict(change.edits), "state": change.state}
    fields |= {"offsets": list(change.offsets), "partitions": change.partitions}
    return json.dumps({key: value for key, value in fields.items() if value}, separators=(",", ":"), ensure_ascii=False).encode()


def _decode(version: int, stored: _Stored) -> HistoryChange:
    fields = _fields(stored.value)
    state = fields.get("state")
    return HistoryChange(
        kind=stored.kind,
        origin=Origin(
            fields.get("user"),
            fields.get("authenticated") is True,
            fields.get("address"),
            fields.get("client"),
            fields.get("note"),
        ),
        config=fields.get("config"),
        edits={key: (before, after) for key, (before, after) in fields.get("edits", {}).items()},
        state=None if state is None else (state[0], state[1]),
        offsets=tuple((partition, before, after) for partition, before, after in fields.get("offsets", ())),
        partitions=fields.get("partitions", 0),
        version=version,
        timestamp=stored.timestamp,
    )
