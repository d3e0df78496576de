"""VerifiableSinkConnector and its task: write a result for each numbered record that arrives."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from sluiceway.api import SinkConnector, SinkRecord, SinkTask, TopicPartition
from sluiceway.config.definition import ConfigDef, ConfigValue
from sluiceway.connectors.verifiable import config as keys
from sluiceway.connectors.verifiable.config import whole
from sluiceway.connectors.verifiable.numbering import task_and_seqno
from sluiceway.connectors.verifiable.results import ResultFile, next_offsets
from sluiceway.errors import DataError


class VerifiableSinkTask(SinkTask):
    """Keeps a result for each record in memory until ``flush`` writes it, so the file contains only flushed records.

    Without a file, results go to standard output, as Kafka's do: on arrival, and with ``"flushed": true`` at the flush.
    """

    _file: ResultFile | None = None

    def start(self, config: Mapping[str, str]) -> None:
        self.configure(config, keys.sink_values(config))

    def configure(self, config: Mapping[str, str], values: Mapping[str, ConfigValue]) -> None:
        """Set up the task with its typed config, and open the file."""
        self._name = config.get(keys.NAME, "")
        self.id = whole(values, keys.ID)
        self._path = None if values[keys.FILE] is None else Path(str(values[keys.FILE]))
        self._offsets_from_file = bool(values[keys.OFFSETS_FROM_FILE])
        self._unflushed: dict[TopicPartition, list[dict[str, Any]]] = {}
        if self._path is not None:
            self._file = ResultFile(self._path)

    def open(self, partitions: Collection[TopicPartition]) -> None:
        if self._offsets_from_file and self._path is not None:
            written = next_offsets(self._path)
            self.context.offset({partition: written[partition] for partition in partitions if partition in written})

    def put(self, records: Sequence[SinkRecord]) -> None:
        now = time.time_ns() // 1_000_000
        # Parse all records before keeping any, because Connect delivers a failed batch again.
        results = [result for record in records if (result := self._result(record, now)) is not None]
        for result in results:
            self._unflushed.setdefault(TopicPartition(result["topic"], result["partition"]), []).append(result)
        if self._file is None:
            _print(results)

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Write the results of these partitions. Raises ConnectError; the records must then be delivered again."""
        now = time.time_ns() // 1_000_000
        results = [result for partition in offsets for result in self._unflushed.pop(TopicPartition(*partition), ())]
        for result in results:
            result.update(time_ms=now, flushed=True)
        if self._file is None:
            _print(results)
        else:
            self._file.append(results)

    def close(self, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:  # unflushed records are delivered again to the next owner of the partition
            self._unflushed.pop(partition, None)

    def stop(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _result(self, record: SinkRecord, now: int) -> dict[str, Any] | None:
        try:
            task, seqno = task_and_seqno(record.key, record.value)
        except DataError as error:
            position = f"{record.original_topic}-{record.original_kafka_partition}@{record.original_kafka_offset}"
            refused = DataError(f"{position}: {error}")
            reporter = self.context.errant_record_reporter
            if reporter is None:
                raise refused from error
            reporter.report(record, refused)
            return None
        return {
            "name": self._name,
            "task": task,
            "sinkTask": self.id,
            "topic": record.original_topic,
            "time_ms": now,
            "seqno": seqno,
            "partition": record.original_kafka_partition,
            "offset": record.original_kafka_offset,
        }


class VerifiableSinkConnector(SinkConnector):
    """Runs ``tasks.max`` tasks, which share one file."""

    task_class = VerifiableSinkTask
    java_class = "org.apache.kafka.connect.tools.VerifiableSinkConnector"
    java_task_class = "org.apache.kafka.connect.tools.VerifiableSinkTask"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return keys.SINK

    def start(self, config: Mapping[str, str]) -> None:
        keys.sink_values(config)
        self._config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [{**self._config, keys.ID: str(task)} for task in range(max_tasks)]


def _print(results: Sequence[Mapping[str, Any]]) -> None:
    for result in results:
        sys.stdout.write(orjson.dumps(result).decode() + "\n")
    sys.stdout.flush()
