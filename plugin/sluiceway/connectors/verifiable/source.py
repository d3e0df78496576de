"""VerifiableSourceConnector and its task: produce numbered records, resuming after the stored number."""

from __future__ import annotations

import random
import string
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sluiceway.api import (
    ConnectorTransactionBoundaries,
    ExactlyOnceSupport,
    SourceConnector,
    SourceRecord,
    SourceTask,
    TransactionContext,
)
from sluiceway.config.definition import ConfigDef, ConfigValue
from sluiceway.connectors.verifiable import config as keys
from sluiceway.connectors.verifiable.config import whole
from sluiceway.data import INT32_SCHEMA, INT64_SCHEMA, STRING_SCHEMA, Schema, Struct
from sluiceway.errors import ConnectError

ID_FIELD = "id"
SEQNO_FIELD = "seqno"

_COMPLETE_FIELDS = {
    "name": STRING_SCHEMA,
    "task": INT32_SCHEMA,
    "topic": STRING_SCHEMA,
    "time_ms": INT64_SCHEMA,
    SEQNO_FIELD: INT64_SCHEMA,
}
COMPLETE_SCHEMA = Schema.struct(_COMPLETE_FIELDS)
FILLED_SCHEMA = Schema.struct({**_COMPLETE_FIELDS, "payload": STRING_SCHEMA})

_MAX_WAIT_SECONDS = 0.5  # pause and stop take effect only after a poll has returned
_MAX_CATCH_UP_SECONDS = 1.0
_SLICE_SECONDS = 0.05


class Transactions:
    """Ends the task's transactions, with ``transaction.boundary=connector``: commits every ``size`` records.

    After every ``abort_every`` transactions (0: never) it sends the last records again and aborts that transaction. A
    consumer of committed records therefore gets each number once, and leaked aborted records show up as duplicates.
    Boundaries depend on the records' numbers only, so they are the same after a restart.
    """

    def __init__(self, context: TransactionContext, size: int, abort_every: int) -> None:
        self._context = context
        self._size = size
        self._abort_every = abort_every

    def room(self, seqno: int) -> int:
        """Return the number of records from ``seqno`` on that fit in the open transaction."""
        return self._size - seqno % self._size

    def end(self, records: Sequence[SourceRecord], following: int) -> list[SourceRecord]:
        """Return the records to send; end the transaction if ``following``, the next number, starts a new one."""
        if not records or following % self._size:
            return list(records)
        last = records[-1]
        self._context.commit_transaction(last)
        if not self._abort_every or (following // self._size) % self._abort_every:
            return list(records)
        # With the last offset, because Connect also stores the offsets of aborted records.
        repeated = [record.new_record(source_offset=last.source_offset) for record in records]
        self._context.abort_transaction(repeated[-1])
        return [*records, *repeated]


class VerifiableSourceTask(SourceTask):
    """Counts up. The offset ``{"seqno": n}`` of the source partition ``{"id": task}`` is the last number sent."""

    def start(self, config: Mapping[str, str]) -> None:
        self.configure(config, keys.source_values(config))

    def configure(self, config: Mapping[str, str], values: Mapping[str, ConfigValue]) -> None:
        """Set up the task with its typed config and the stored offset."""
        self._name = config.get(keys.NAME, "")
        self.id = whole(values, keys.ID)
        self._topic = str(values[keys.TOPIC])
        self._complete = bool(values[keys.COMPLETE_RECORD_DATA])
        self._with_schema = bool(values[keys.RECORD_SCHEMA])
        self._key = str(values[keys.RECORD_KEY])
        self.batch_size = whole(values, keys.BATCH_SIZE)
        self._partitions = whole(values, keys.PARTITIONS)
        self._end = whole(values, keys.RECORDS_MAX)
        size = whole(values, keys.RECORD_SIZE)
        self._payload = "".join(random.Random(self.id).choices(string.ascii_letters, k=size))  # noqa: S311 (filling)
        self._partition = {ID_FIELD: self.id}
        self.seqno = self._stored_seqno() + 1
        self._throttler = ThroughputThrottler(whole(values, keys.THROUGHPUT))
        self._transactions: Transactions | None = None
        if (context := self.context.transaction_context) is not None:
            size, abort_every = whole(values, keys.TRANSACTION_RECORDS), whole(values, keys.TRANSACTION_ABORT_EVERY)
            self._transactions = Transactions(context, size, abort_every)

    def poll(self) -> Sequence[SourceRecord] | None:
        return self.next_records(self.batch_size)

    def next_records(self, limit: int) -> list[SourceRecord]:
        """Return at most ``limit`` records at the configured throughput, after a short wait; none after ``records.max``."""
        limit = limit if self._end < 0 else min(limit, self._end - self.seqno)
        if limit <= 0:
            return []
        if self._transactions is not None:
            limit = min(limit, self._transactions.room(self.seqno))
        if (seconds := self._throttler.wait_seconds(limit)) > 0:
            time.sleep(min(seconds, _MAX_WAIT_SECONDS))
        now = time.time_ns() // 1_000_000
        first = self.seqno
        self.seqno += self._throttler.take(limit)
        records = [self._record(seqno, now) for seqno in range(first, self.seqno)]
        return records if self._transactions is None else self._transactions.end(records, self.seqno)

    def value(self, seqno: int, time_ms: int) -> tuple[Schema | None, Any]:
        """Return the schema and value of the record with this number."""
        if not self._complete:
            return (INT64_SCHEMA if self._with_schema else None), seqno
        fields = {"name": self._name, "task": self.id, "topic": self._topic, "time_ms": time_ms, SEQNO_FIELD: seqno}
        schema = COMPLETE_SCHEMA
        if self._payload:
            schema = FILLED_SCHEMA
            fields["payload"] = self._payload
        return (schema, Struct(schema, fields)) if self._with_schema else (None, fields)

    def _record(self, seqno: int, time_ms: int) -> SourceRecord:
        schema, value = self.value(seqno, time_ms)
        key_schema, key = self._key_of(seqno)
        return SourceRecord(
            self._partition,
            {SEQNO_FIELD: seqno},
            self._topic,
            value,
            schema,
            key,
            key_schema,
            seqno % self._partitions if self._partitions else None,
        )

    def _key_of(self, seqno: int) -> tuple[Schema | None, int | None]:
        if self._key == keys.KEY_NONE:
            return None, None
        schema, key = (INT32_SCHEMA, self.id) if self._key == keys.KEY_TASK else (INT64_SCHEMA, seqno)
        return (schema if self._with_schema else None), key

    def _stored_seqno(self) -> int:
        """Return the last number sent, -1 if no record was sent."""
        offset = self.context.offset_storage_reader.offset(self._partition)
        seqno = None if offset is None else offset.get(SEQNO_FIELD)
        if seqno is None:
            return -1
        if type(seqno) is not int or seqno < 0:
            raise ConnectError(
                f"The stored offset of {self._partition} has the seqno {seqno!r}, not a number of records. "
                "Correct it with PATCH /connectors/<name>/offsets, or DELETE it to start from 0."
            )
        return seqno


class VerifiableSourceConnector(SourceConnector):
    """Runs ``tasks.max`` tasks, each with its own sequence numbers."""

    task_class = VerifiableSourceTask
    java_class = "org.apache.kafka.connect.tools.VerifiableSourceConnector"
    java_task_class = "org.apache.kafka.connect.tools.VerifiableSourceTask"
    interval_by_timestamp = False

    @classmethod
    def config_def(cls) -> ConfigDef:
        return keys.SOURCE

    def start(self, config: Mapping[str, str]) -> None:
        keys.source_values(config)
        self._config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [{**self._config, keys.ID: str(task)} for task in range(max_tasks)]

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED

    def can_define_transaction_boundaries(self, config: Mapping[str, str]) -> ConnectorTransactionBoundaries:
        return ConnectorTransactionBoundaries.SUPPORTED


class ThroughputThrottler:
    """Computes how many records may be sent now at ``rate`` records per second; negative: no limit, 0: no records.

    After an interruption (a paused task, an unreachable Kafka), at most one second's records are caught up.
    """

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._due = clock()  # when the next record may be sent

    def take(self, limit: int) -> int:
        """Return how many of ``limit`` records may be sent now, and count them as sent."""
        if self._rate <= 0:
            return limit if self._rate else 0
        now = self._clock()
        self._due = max(self._due, now - _MAX_CATCH_UP_SECONDS)
        count = max(0, min(limit, int((now - self._due) * self._rate) + 1)) if now >= self._due else 0
        self._due += count / self._rate
        return count

    def wait_seconds(self, limit: int) -> float:
        """Return the seconds until the records of 50 ms, at most ``limit``, may be sent: few polls with small batches."""
        if self._rate <= 0:
            return 0.0 if self._rate else _SLICE_SECONDS
        wanted = min(limit, max(1, int(self._rate * _SLICE_SECONDS)))
        return max(0.0, self._due + (wanted - 1) / self._rate - self._clock())
