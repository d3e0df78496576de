"""Reads one shard of a stream from a position on. Runs on executors."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sluiceway.backoff import Backoff
from sluiceway.connectors.aws.client import ThrottledError, answered_at, aws_errors
from sluiceway.connectors.aws.kinesis_options import CONTINUE, TRIMMED, KinesisSourceOptions
from sluiceway.connectors.aws.kinesis_shards import OLDEST, Position
from sluiceway.connectors.aws.kinesis_stream import NO_RESOURCE
from sluiceway.connectors.errors import RefusedError
from sluiceway.errors import ConnectError

log = logging.getLogger(__name__)

_READS_SECONDS = 0.2
"""Kinesis allows five requests a second to a shard."""
_EXPIRED = "ExpiredIteratorException"


class ShardReader:
    """A shard that is read. One thread at a time calls it.

    Attributes:
        position: what was read, or where to begin.
        due: when to read next, by the monotonic clock.
        at_end: whether all was read that the shard had when this reader was made.
        trimmed: how often records may have been trimmed unread.
        unstored: whether the position has changed without a record that has it.
    """

    def __init__(self, options: KinesisSourceOptions, shard: str, position: Position, retention: int) -> None:
        """``retention`` is the seconds for which the stream keeps records."""
        self.shard = shard
        self.position = position
        self.due = 0.0
        self.at_end = False
        self.trimmed = 0
        self.unstored = False
        self._options = options
        self._retention = retention * 1000
        self._iterator: str | None = None
        self._began = time.time() * 1000
        self._stored_read = position.read or 0
        self._throttled = Backoff(_READS_SECONDS * 2, max(_READS_SECONDS, options.throttled_backoff))

    def read(self, client: Any) -> Sequence[Mapping[str, Any]]:
        """Return the next records, as GetRecords gives them. Raises UnreachableError and ConnectError."""
        started = time.monotonic()
        try:
            answer = self._answer(client)
        except ThrottledError as error:
            pause = self._throttled.next()
            log.info("Shard %s is read again in %.1f s: %s", self.shard, pause, error)
            self.due = started + pause
            return ()
        self._throttled.reset()
        if answer is None:
            return ()
        records: Sequence[Mapping[str, Any]] = answer["Records"]
        behind = int(answer.get("MillisBehindLatest") or 0)
        self.due = started + (_READS_SECONDS if records or behind else self._options.empty_backoff)
        self._iterator = answer.get("NextShardIterator")
        now = int(time.time() * 1000) - behind
        self.at_end = self.at_end or now >= self._began
        if self._iterator is None:
            self.end()
        elif not records:
            self._note_read(now)
        return records

    def end(self) -> None:
        """Note that the shard was read to its end; called before its last records are taken."""
        self.position = replace(self.position, ended=True)
        self.unstored = self.at_end = True

    def _note_read(self, now: int) -> None:
        """Note up to when an idle shard was read, from time to time, so that it does not count as trimmed after a restart."""
        self.position = replace(self.position, read=now)
        if now - self._stored_read > self._retention / 8:
            self._stored_read = now
            self.unstored = True

    def _answer(self, client: Any) -> Mapping[str, Any] | None:
        """Return the answer of GetRecords; None if another attempt is needed."""
        if self._iterator is None:
            self._iterator = self._begin(client)
            if self._iterator is None:
                return None
        try:
            with aws_errors(self._options.account):
                found: Mapping[str, Any] = client.get_records(ShardIterator=self._iterator, Limit=self._options.limit)
        except RefusedError as error:
            if error.code != _EXPIRED:
                raise
            log.info("The iterator of shard %s has expired, and another one is asked for", self.shard)
            self._iterator = None
            return None
        return found

    def _begin(self, client: Any) -> str | None:
        """Return an iterator for the position; None for a shard that has expired."""
        position = self.position
        if position.read is not None and position.read < time.time() * 1000 - self._retention:
            self._take_trimmed("was not read for longer than the stream keeps records")
            position = self.position = Position(since=OLDEST)
        options = self._options
        try:
            with aws_errors(options.account):
                answer = client.get_shard_iterator(StreamName=options.stream, ShardId=self.shard, **_iterator_of(position))
        except RefusedError as error:
            if error.code == NO_RESOURCE and self.shard in str(error):  # not the stream
                self._take_trimmed("has expired before it was read to its end")
                self.end()
                return None
            if error.code != "InvalidArgumentException":
                raise
            raise ConnectError(
                f"Stream {options.stream} does not take the position of shard {self.shard}: {error}. If the stream was deleted "
                f"and created again, stop the connector and reset its offsets: {_RESET}"
            ) from error
        if position == Position():  # records to come: after a restart, those that have come meanwhile
            since = int(answered_at(answer, time.time()) * 1000)
            self.position = Position(since=since, read=since)
            self.unstored = True
        return str(answer["ShardIterator"])

    def _take_trimmed(self, why: str) -> None:
        """Count trimmed records. Raises ConnectError if the config demands them."""
        text = f"Shard {self.shard} of stream {self._options.stream} {why}: records may be lost."
        if not self._options.skips_trimmed:
            raise ConnectError(f"{text} To continue with the oldest one that is there, set {TRIMMED}={CONTINUE}.")
        self.trimmed += 1
        log.warning("%s It continues with the oldest one that is there.", text)


_RESET = "sluiceway offsets reset NAME"


def _iterator_of(position: Position) -> dict[str, Any]:
    """Return the parameters of GetShardIterator."""
    if position.sequence is not None:
        kind = "AFTER_SEQUENCE_NUMBER" if position.subsequence is None else "AT_SEQUENCE_NUMBER"
        return {"ShardIteratorType": kind, "StartingSequenceNumber": position.sequence}
    if position.since is None:
        return {"ShardIteratorType": "LATEST"}
    if position.since == OLDEST:
        return {"ShardIteratorType": "TRIM_HORIZON"}
    return {"ShardIteratorType": "AT_TIMESTAMP", "Timestamp": position.since / 1000}
