"""MockSourceConnector and its task: produce the records of the verifiable source, with failures and bad records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sluiceway.api import ConnectorTransactionBoundaries, ExactlyOnceSupport, SourceConnector, SourceRecord
from sluiceway.config.definition import ConfigDef
from sluiceway.connectors.mock import config as keys
from sluiceway.connectors.mock.connector import MockConnector
from sluiceway.connectors.mock.failures import Failures, is_bad
from sluiceway.connectors.mock.memory import log_memory
from sluiceway.connectors.verifiable.config import TOPIC, source_values
from sluiceway.connectors.verifiable.source import VerifiableSourceTask
from sluiceway.data import STRING_SCHEMA, Schema
from sluiceway.errors import DataError


class Unconvertible:
    """A value that no converter can write, not even as text."""

    def __str__(self) -> str:
        raise DataError("This mock value cannot be converted, as bad.records.share asks for.")

    __repr__ = object.__repr__


class MockSourceTask(VerifiableSourceTask):
    """Fails in start, poll, commit or stop as configured. Logs its memory at each commit."""

    def start(self, config: Mapping[str, str]) -> None:
        values = source_values(config, keys.SOURCE)
        self._failures = Failures.of_task(values)
        self._polled = 0
        self._bad_share = float(str(values[keys.BAD_RECORDS_SHARE]))
        self._idle = not values[TOPIC]
        self.configure(config, values)
        self._failures.at(keys.START)

    def poll(self) -> Sequence[SourceRecord] | None:
        self._failures.at(keys.POLL, self._polled)
        if self._idle:
            return None
        room = self._failures.room(keys.POLL, self._polled)
        records = self.next_records(self.batch_size if not room else min(room, self.batch_size))
        self._polled += len(records)  # includes the repeated records of aborted transactions
        return records

    def value(self, seqno: int, time_ms: int) -> tuple[Schema | None, Any]:
        if self._bad_share and is_bad(seqno, self._bad_share):
            return STRING_SCHEMA, Unconvertible()
        return super().value(seqno, time_ms)

    def commit(self) -> None:
        log_memory(self.id, self._polled)
        self._failures.at(keys.COMMIT, self._polled)

    def stop(self) -> None:
        self._failures.at(keys.STOP, self._polled)


class MockSourceConnector(MockConnector, SourceConnector):
    """Sends numbered records and fails as configured. Sends no records without a topic."""

    task_class = MockSourceTask
    java_class = "org.apache.kafka.connect.tools.MockSourceConnector"
    java_task_class = "org.apache.kafka.connect.tools.MockSourceTask"
    interval_by_timestamp = False

    @classmethod
    def config_def(cls) -> ConfigDef:
        return keys.SOURCE

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED

    def can_define_transaction_boundaries(self, config: Mapping[str, str]) -> ConnectorTransactionBoundaries:
        return ConnectorTransactionBoundaries.SUPPORTED
