"""Calls ``commitRecord`` and ``commit`` of Java source tasks, each on a Java thread of its own, while ``poll`` may run."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future

from sluiceway.java_plugins.acknowledgements import Acknowledgements
from sluiceway.java_plugins.frames import Frame
from sluiceway.java_plugins.host import JavaObject, Watch

_MOST_RECORDS = 20_000  # that Kafka has and the task does not know of: they are in Java's heap
_RECORD_BYTES = 32


class CommitCalls:
    """Passes acknowledgements and commits to one task. Used by the task's thread only.

    A method that the class does not override is not called. ``context`` is the prefix of the task's log lines.
    """

    def __init__(self, task: JavaObject, context: str) -> None:
        traits = task.call("traits")
        self.overridden = bool(traits["commitRecord"]), bool(traits["commit"])
        """Whether the class overrides ``commitRecord``, and whether ``commit``."""
        self.acknowledgements = Acknowledgements()
        self._records = self._object(task, "sentRecords", context) if traits["commitRecord"] else None
        self._commits = self._object(task, "offsetCommits", context.replace("] ", "|offsets] ")) if traits["commit"] else None
        self._begun: deque[tuple[Future[Frame], int]] = deque()  # calls, and of how many records
        self._calls = 0
        self._waiting = 0  # records
        self._commit: Future[Frame] | None = None
        self._commit_again = False

    @staticmethod
    def _object(task: JavaObject, kind: str, context: str) -> JavaObject:
        return task.host.new(kind, {"task": task.number}, context=context)

    def acknowledge(self) -> None:
        """Begin to call ``commitRecord`` for the records that Kafka has acknowledged since the last call."""
        if self._records is not None and (places := self.acknowledgements.take()):
            records = len(places) // _RECORD_BYTES
            self._begun.append((self._records.begin("acknowledge", body=places), records))
            self._calls += 1
            self._waiting += records

    def commit(self) -> None:
        """Begin to call ``commit``, after the calls of ``commitRecord``. If the last one has not returned, once it has."""
        self.acknowledge()
        if self._commits is None:
            return
        self._commit_again = self._commit is not None and not self._commit.done()
        if not self._commit_again:
            self._commit = self._commits.begin("commit", {"after": self._calls})

    def await_some(self, watch: Watch) -> None:
        """Wait until few calls of ``commitRecord`` are left: a slow one must hold up ``poll``, not fill Java's heap."""
        self._await(_MOST_RECORDS, watch)

    def await_all(self, watch: Watch) -> None:
        """Wait until all calls have returned. Raises JavaProcessError and what ``watch`` raises."""
        self.acknowledge()
        self._await(0, watch)
        while self._commit is not None:
            commit, self._commit = self._commit, None
            JavaObject.finish(commit, watch=watch)
            if self._commit_again:
                self.commit()

    def _await(self, most: int, watch: Watch) -> None:
        while self._begun and (self._waiting > most or self._begun[0][0].done()):
            call, records = self._begun.popleft()
            self._waiting -= records
            JavaObject.finish(call, watch=watch)
