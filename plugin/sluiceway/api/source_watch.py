"""The interface of what watches a source's system for changes, so that a run starts when there is something to read."""

from __future__ import annotations

from typing import Protocol

Mark = str | int | None
"""A value that a watch compares. None if it cannot say, or if there is nothing at all: then no run starts."""


class SourceWatch(Protocol):
    """Watches the other system of one connector. One thread calls it, again and again, every half second.

    It must change nothing in the other system. Where a question costs more than a few milliseconds, ``mark`` asks less often
    and returns the last answer meanwhile.
    """

    def mark(self) -> Mark:
        """Return a value that changes when there is something new to read.

        What the connector's own runs write must not change it, or each run would start the next one. Something that the tasks do
        not read yet, such as rows that wait for an open transaction, must change it only when they do. May block for some
        seconds. If it raises ConnectError, it is called again later, on the same watch. It must not have secrets.
        """

    def close(self) -> None:
        """Release what it holds. Not called while ``mark`` runs."""
