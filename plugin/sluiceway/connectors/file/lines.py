"""Splits a stream of bytes into lines at ``\\n``, ``\\r\\n`` and ``\\r``, as Kafka's file source does. No I/O."""

from __future__ import annotations

from typing import NamedTuple


class Lines(NamedTuple):
    """Complete lines with their ends, as bytes. ``start`` is the position in bytes of the first one."""

    raw: bytes
    start: int

    def split(self) -> list[tuple[str, int]]:
        """Return the lines without line ends, each with the position in bytes after it."""
        raw, position = self
        if b"\r" not in raw and raw.endswith(b"\n") and raw.isascii():
            lines = raw.decode("ascii").split("\n")
            lines.pop()
            return [(line, position := position + len(line) + 1) for line in lines]
        return [(_text(line), position := position + len(line)) for line in raw.splitlines(keepends=True)]


class LineSplitter:
    """Splits chunks of bytes into complete lines.

    ``position`` is the position in bytes after the last line returned. An incomplete last line is held back. So is a line
    that ends with ``\\r`` at the end of a chunk, since ``\\n`` may follow.
    """

    def __init__(self, position: int = 0) -> None:
        self.position = position
        self._rest: list[bytes] = []

    @property
    def held(self) -> int:
        """The number of bytes held back."""
        return sum(map(len, self._rest))

    def feed(self, chunk: bytes) -> Lines:
        """Return the lines that ``chunk`` completes."""
        end = last_end(chunk)
        if self._rest and self._rest[-1].endswith(b"\r"):  # the next byte decides only whether the line end has two bytes
            end = max(end, 0)
        if end < 0:
            self._rest.append(chunk)
            return Lines(b"", self.position)
        # Joining only when a line is complete keeps the cost of a very long line linear.
        complete = b"".join((*self._rest, chunk[:end]))
        self._rest = [chunk[end:]] if end < len(chunk) else []
        lines = Lines(complete, self.position)
        self.position += len(complete)
        return lines

    def finish(self) -> bytes:
        """Return the bytes held back, the last line. No more chunks may follow."""
        rest, self._rest = b"".join(self._rest), []
        return rest


def _text(raw: bytes) -> str:
    return raw.rstrip(b"\r\n").decode("utf-8", "replace")


def last_end(chunk: bytes) -> int:
    """Return the index after the last complete line end, or -1. A ``\\r`` as the last byte may be incomplete."""
    newline = chunk.rfind(b"\n")
    return max(newline, chunk.rfind(b"\r", 0, len(chunk) - 1)) + 1 or -1
