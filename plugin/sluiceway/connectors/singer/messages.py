"""Decodes the lines that a tap prints. No I/O. Loads msgspec."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from sluiceway.errors import ConnectError

RECORD, SCHEMA, STATE, ACTIVATE_VERSION, BATCH = "RECORD", "SCHEMA", "STATE", "ACTIVATE_VERSION", "BATCH"
_CURRENT = "currently_syncing"
_NOTHING = msgspec.Raw(b"null")


class Message(msgspec.Struct, gc=False):
    """A message of Singer's specification. What is not there has its default."""

    type: str
    stream: str = ""
    record: msgspec.Raw = _NOTHING
    value: msgspec.Raw = _NOTHING
    schema: msgspec.Raw = _NOTHING
    key_properties: list[str] | None = None
    version: Any = None
    time_extracted: Any = None
    encoding: Any = None
    manifest: list[str] | None = None


_decoder = msgspec.json.Decoder(Message)


def decode(data: bytes) -> list[Message]:
    """Return the messages of complete lines. Raises ConnectError, without data, for a line that is none."""
    try:
        return _decoder.decode_lines(data)
    except msgspec.MsgspecError:
        return [_message(line) for line in data.split(b"\n") if line.strip()]


def record_message(stream: str, record: bytes) -> Message:
    """Return the message of a record."""
    return Message(RECORD, stream, msgspec.Raw(record))


def _message(line: bytes) -> Message:
    try:
        return _decoder.decode(line)
    except msgspec.MsgspecError as error:
        problem = str(error)
    try:  # Python's json module writes NaN and Infinity, which are no JSON
        found = dict(json.loads(line))
        fields = {name: found[name] for name in ("record", "value", "schema") if name in found}
        rest = msgspec.convert({name: each for name, each in found.items() if name not in fields}, Message)
    except (ValueError, TypeError, msgspec.MsgspecError):
        raise ConnectError(
            f"The tap has printed a line of {len(line)} bytes that is no Singer message ({problem}). Standard output is for "
            "messages only: a program that prints anything else there is no tap, or has a fault."
        ) from None
    return msgspec.structs.replace(rest, **{name: msgspec.Raw(json.dumps(each)) for name, each in fields.items()})


def resumable(state: str) -> str:
    """Return a state as a tap can continue from it.

    ``tap-mysql`` and its relatives begin with the stream that they were reading, and leave it out if it has no bookmark yet.
    Without its name they read it like each other stream without a bookmark.
    """
    fields = msgspec.json.decode(state, type=dict[str, msgspec.Raw])
    found = json.loads(state)
    current, bookmarks = found.get(_CURRENT), found.get("bookmarks")
    if not isinstance(current, str) or (isinstance(bookmarks, dict) and not is_empty(bookmarks.get(current))):
        return state
    return msgspec.json.encode({name: each for name, each in fields.items() if name != _CURRENT}).decode()


class Lines:
    """Cuts chunks of bytes at the ends of lines."""

    def __init__(self) -> None:
        self._rest = b""

    def complete(self, chunk: bytes) -> bytes:
        """Return the complete lines up to a chunk's end."""
        end = chunk.rfind(b"\n") + 1
        if not end:
            self._rest += chunk
            return b""
        lines, self._rest = self._rest + chunk[:end], chunk[end:]
        return lines

    def last(self) -> bytes:
        """Return what follows the last line."""
        rest, self._rest = self._rest, b""
        return rest


def is_empty(state: Any) -> bool:
    """Return whether a state holds no position, at any depth. The stream that a tap was reading is none."""
    if isinstance(state, dict):
        return all(is_empty(each) for name, each in state.items() if name != _CURRENT)
    if isinstance(state, list):
        return all(is_empty(each) for each in state)
    return state is None or state == ""
