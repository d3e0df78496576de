"""Encodes and decodes the frames between Python and the Java process of plugins. No I/O except ``read_frame``.

A frame is, little endian: the length of the rest (int), kind (byte), id (int), length of the header (int), the header (JSON) and
the body (the rest). Each side numbers its own requests, and an answer has the id of its request.

A request's header is ``{"object": 1, "method": "poll", "args": ...}``; an answer's is the result. An error's header from Java is
``{"classes": [...], "message": ..., "trace": ...}``, with the class of the Java exception before its superclasses.
"""

from __future__ import annotations

import struct
from typing import Any, BinaryIO, NamedTuple

import orjson

REQUEST, ANSWER, ERROR = 1, 2, 3

_HEAD = struct.Struct("<ibii")
_LENGTH = struct.Struct("<i")


class Frame(NamedTuple):
    """A frame that was read; ``body`` is what follows the header."""

    kind: int
    id: int
    header: Any
    body: bytes


def encode(kind: int, number: int, header: object, body: bytes = b"") -> bytes:
    """Return a frame's bytes. Raises TypeError for a header that JSON cannot hold."""
    text = orjson.dumps(header)
    return _HEAD.pack(_HEAD.size - _LENGTH.size + len(text) + len(body), kind, number, len(text)) + text + body


def read_frame(stream: BinaryIO) -> Frame | None:
    """Return the next frame of a buffered stream, or None at its end, in the middle of a frame, or where there is no frame."""
    head = stream.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    length, kind, number, header_length = _HEAD.unpack(head)
    if kind not in (REQUEST, ANSWER, ERROR) or header_length < 0 or length < header_length:
        return None  # something else wrote to the pipe
    header = stream.read(header_length)
    body_length = length - (_HEAD.size - _LENGTH.size) - header_length
    body = stream.read(body_length) if body_length else b""
    if len(header) < header_length or len(body) < body_length:
        return None
    return Frame(kind, number, orjson.loads(header), body)
