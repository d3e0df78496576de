"""Helpers for exactly-once sources: a connector with its own transaction boundaries, tasks in processes, and readers."""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from sluiceway.api import ConnectorTransactionBoundaries, SourceConnector, SourceRecord, SourceTask
from sluiceway.config.definition import ConfigDef
from sluiceway.config.worker import WorkerConfig
from sluiceway.data import INT64_SCHEMA
from sluiceway.storage.factory import open_source_offsets
from support.engine import RunningTask
from support.freeze import freeze
from support.processes import fresh_processes

FIBONACCI = "support.transactions.FibonacciSourceConnector"


class FibonacciSourceTask(SourceTask):
    """Counts up to ``records.max`` in batches of ten. Transactions have 1, 2, 3, 5, 8, ... records; every other one is aborted.

    With ``by.batch`` true, each batch is one of these transactions, ended by a request for the batch.
    """

    def start(self, config: Mapping[str, str]) -> None:
        assert self.context.transaction_context is not None
        self.transaction = self.context.transaction_context
        self.name = config["name"]
        self.end = int(config["records.max"])
        self.by_batch = config.get("by.batch") == "true"
        stored = self.context.offset_storage_reader.offset({"id": 0})
        self.next = 0 if stored is None else stored["seqno"] + 1

    def poll(self) -> Sequence[SourceRecord] | None:
        size = 10
        if self.by_batch:
            kept, after = fibonacci_transaction(self.next)
            size = after - self.next
            (self.transaction.commit_transaction if kept else self.transaction.abort_transaction)()
        numbers = range(self.next, min(self.next + size, self.end))
        self.next = numbers.stop
        records = [SourceRecord({"id": 0}, {"seqno": n}, self.name, n, INT64_SCHEMA) for n in numbers]
        for record in records if not self.by_batch else ():
            kept, after = fibonacci_transaction(record.value)
            if record.value + 1 == after:
                (self.transaction.commit_transaction if kept else self.transaction.abort_transaction)(record)
        return records or None


def fibonacci_transaction(number: int) -> tuple[bool, int]:
    """Return True if the transaction with a number is committed, and the first number after the transaction."""
    kept, first, size, following = True, 0, 1, 2
    while number >= first + size:
        kept, first, size, following = not kept, first + size, following, size + following
    return kept, first + size


class FibonacciSourceConnector(SourceConnector):
    task_class = FibonacciSourceTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef()

    def start(self, config: Mapping[str, str]) -> None: ...

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [{}]

    def can_define_transaction_boundaries(self, config: Mapping[str, str]) -> ConnectorTransactionBoundaries:
        return ConnectorTransactionBoundaries.SUPPORTED


def seen(bootstrap: str, topic: str, *, committed: bool = True, partition: int = 0) -> list[Message]:
    """Return a partition's records up to its current end, by default only committed ones."""
    reader = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": uuid.uuid4().hex,
            "enable.partition.eof": True,
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "enable.auto.commit": False,
        }
    )
    try:
        reader.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
        found: list[Message] = []
        while True:
            first = reader.poll(10.0)
            assert first is not None, f"{topic} could not be read to its end"
            for message in [first, *reader.consume(1000, 0)]:
                error = message.error()
                if error is None:
                    found.append(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    return found
    finally:
        reader.close()


def run_task(config: dict[str, str], worker: dict[str, str], bounded: bool) -> None:
    """Run a task until it ends; the entry point of ``TaskProcess``."""
    store = open_source_offsets(WorkerConfig.of(worker), config)
    store.start()
    with RunningTask(config, worker, store=store, bounded=bounded) as task:
        task.join(600)


@contextmanager
def task_process(config: dict[str, str], worker: dict[str, str], *, bounded: bool = False) -> Iterator[TaskProcess]:
    """Run a task in a process of its own, and kill the process at the end if it still runs."""
    process = TaskProcess(config, worker, bounded)
    try:
        yield process
    finally:
        process.kill()


class TaskProcess:
    def __init__(self, config: dict[str, str], worker: dict[str, str], bounded: bool) -> None:
        self._process = fresh_processes().Process(target=run_task, args=(config, worker, bounded), daemon=True)
        self._process.start()

    def kill(self) -> None:
        self._process.kill()
        self._process.join()

    def freeze(self) -> None:
        assert self._process.pid is not None
        freeze(self._process.pid)

    def thaw(self) -> None:
        os.kill(self._process.pid or 0, signal.SIGCONT)

    def join(self, within: float) -> bool:
        """Wait until the task ends by itself; return True if it has."""
        self._process.join(within)
        return not self._process.is_alive()
