"""MockSinkConnector and its task: take records slowly, reject some, and fail as configured."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from sluiceway.api import SinkConnector, SinkRecord, TopicPartition
from sluiceway.config.definition import ConfigDef
from sluiceway.connectors.mock import config as keys
from sluiceway.connectors.mock.connector import MockConnector
from sluiceway.connectors.mock.failures import Failures, is_bad
from sluiceway.connectors.mock.memory import log_memory
from sluiceway.connectors.verifiable.config import FILE, THROUGHPUT, sink_values
from sluiceway.connectors.verifiable.sink import VerifiableSinkTask
from sluiceway.errors import DataError


class MockSinkTask(VerifiableSinkTask):
    """Takes any records; with ``file``, records of a verifiable source, and writes results. Logs its memory at each flush.

    With ``throughput``, ``put`` blocks for the time of its whole batch: 500 records at 1 per second take 500 s.
    """

    def start(self, config: Mapping[str, str]) -> None:
        values = sink_values(config, keys.SINK)
        self._failures = Failures.of_task(values)
        self._rate = float(str(values[THROUGHPUT]))
        self._bad_share = float(str(values[keys.BAD_RECORDS_SHARE]))
        self._to_file = values[FILE] is not None
        self._taken = 0
        self.configure(config, values)
        self._failures.at(keys.START)

    def put(self, records: Sequence[SinkRecord]) -> None:
        self._failures.at(keys.PUT, self._taken, len(records))
        good = [record for record in records if not self._is_rejected(record)]
        if self._to_file:
            super().put(good)
        if self._rate > 0:
            time.sleep(len(records) / self._rate)
        self._taken += len(records)

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        log_memory(self.id, self._taken)
        self._failures.at(keys.COMMIT, self._taken)
        if self._to_file:
            super().flush(offsets)

    def stop(self) -> None:
        super().stop()
        self._failures.at(keys.STOP, self._taken)

    def _is_rejected(self, record: SinkRecord) -> bool:
        """Report a bad record and return True. Raises DataError if there is no errant record reporter."""
        if not self._bad_share or not is_bad(record.original_kafka_offset, self._bad_share):
            return False
        place = f"{record.original_topic}-{record.original_kafka_partition}@{record.original_kafka_offset}"
        error = DataError(f"The mock sink refuses {place}, as {keys.BAD_RECORDS_SHARE} asks for.")
        reporter = self.context.errant_record_reporter
        if reporter is None:
            raise error
        reporter.report(record, error)
        return True


class MockSinkConnector(MockConnector, SinkConnector):
    """Takes the records of its topics and fails as configured."""

    task_class = MockSinkTask
    java_class = "org.apache.kafka.connect.tools.MockSinkConnector"
    java_task_class = "org.apache.kafka.connect.tools.MockSinkTask"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return keys.SINK
