"""Cuts a stream of bytes into lines as Java's file source does: ``\\n``, ``\\r\\n`` and a lone ``\\r`` end a line. Pure."""

from __future__ import annotations


class LineCutter:
    """Takes chunks of bytes and gives complete lines with the position behind each.

    ``position`` is the count of bytes in lines that were given out. A last line without its end is held back, and so is a
    ``\\r`` at the end of what is there: a ``\\n`` may follow.
    """

    def __init__(self, position: int = 0) -> None:
        self.position = position
        self._rest: list[bytes] = []

    @property
    def held(self) -> int:
        """How many bytes are held back."""
        return sum(map(len, self._rest))

    def feed(self, chunk: bytes) -> list[tuple[str, int]]:
        """Return the lines that ``chunk`` completes, without their ends, each with the position behind it."""
        end = _last_end(chunk)
        if self._rest and self._rest[-1].endswith(b"\r"):  # whatever comes now, that line is over
            end = max(end, 0)
        if end < 0:
            self._rest.append(chunk)
            return []
        # Joined only once a line is complete, so that a huge line costs no more than its length.
        complete = b"".join((*self._rest, chunk[:end]))
        self._rest = [chunk[end:]] if end < len(chunk) else []
        return self._cut(complete)

    def finish(self) -> list[str]:
        """Return what is held back as a last line, if there is any: nothing more will come."""
        rest, self._rest = b"".join(self._rest), []
        return [_text(rest)] if rest else []

    def _cut(self, complete: bytes) -> list[tuple[str, int]]:
        position = self.position
        self.position += len(complete)
        if b"\r" not in complete and complete.isascii():
            lines = complete.decode("ascii").split("\n")
            lines.pop()
            return [(line, position := position + len(line) + 1) for line in lines]
        return [(_text(raw), position := position + len(raw)) for raw in complete.splitlines(keepends=True)]


def _text(raw: bytes) -> str:
    return raw.rstrip(b"\r\n").decode("utf-8", "replace")


def _last_end(chunk: bytes) -> int:
    """Return the index behind the last line end for certain (a ``\\r`` as the last byte is not), or -1."""
    newline = chunk.rfind(b"\n")
    return max(newline, chunk.rfind(b"\r", 0, len(chunk) - 1)) + 1 or -1
