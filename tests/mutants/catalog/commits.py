"""Commits: offsets are stored after what they stand for, and never beyond it."""

from mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "commit-source-before-flush",
        "runtime/source/delivery.py",
        'in ("records", self._sender.flush), ("dead letter queue records", self._flush_dead_letter_queue):',
        'in [("dead letter queue records", self._flush_dead_letter_queue)]:',
        "Source offsets are stored before Kafka has the records.",
    ),
    Mutant(
        "commit-source-before-dead-letters",
        "runtime/source/delivery.py",
        'in ("records", self._sender.flush), ("dead letter queue records", self._flush_dead_letter_queue):',
        'in [("records", self._sender.flush)]:',
        "Source offsets are stored before Kafka has the dead letter queue records.",
    ),
    Mutant(
        "commit-source-behind",
        "runtime/source/worker_source_task.py",
        "if self._delivery.behind and",
        "if False and",
        "A source that is faster than Kafka never stores an offset.",
        tests=(
            "tests/integration/test_source_task.py::test_offsets_are_stored_although_records_come_faster_than_kafka_takes_them",
        ),
    ),
    Mutant(
        "commit-source-failed-write",
        "runtime/source/offset_storage.py",
        "        self._store.put(self.connector, list(self._pending.values()))\n        self._pending.clear()",
        "        pending = list(self._pending.values())\n        self._pending.clear()\n"
        "        self._store.put(self.connector, pending)",
        "Source offsets whose write failed are forgotten.",
    ),
    Mutant(
        "commit-source-last-offset",
        "runtime/source/offset_storage.py",
        "if last is not None and record.source_partition is not last.source_partition:",
        "if False:",
        "Only the last source partition's offset of a batch is stored.",
    ),
    Mutant(
        "commit-after-failure",
        "runtime/source/delivery.py",
        "if self._sender.failed or isinstance(error, FencedError)",
        "if isinstance(error, FencedError)",
        "Source offsets are stored although a record was lost.",
    ),
    Mutant(
        "commit-exactly-once-part",
        "runtime/source/exactly_once_delivery.py",
        "committed = self._at_batch_end and self.apply(self._boundary.when_stopping())",
        "committed = self.apply(self._boundary.when_stopping())",
        "An exactly-once source commits part of a batch.",
    ),
    Mutant(
        "commit-exactly-once-acknowledgement",
        "runtime/source/exactly_once_delivery.py",
        "            self._transactions.abort(self._check)\n        self._acknowledgements.clear()",
        "            self._transactions.abort(self._check)",
        "Records of an aborted transaction are acknowledged to the task.",
    ),
    Mutant(
        "commit-sink-dead-letters",
        "runtime/sink/offset_commits.py",
        "        if flushed:\n            self._consumer.commit(self._changed(safe))",
        "        self._consumer.commit(self._changed(safe))",
        "Sink offsets are committed before Kafka has the dead letter queue records.",
    ),
    Mutant(
        "commit-sink-beyond",
        "runtime/sink/offset_commits.py",
        "if current is None or offset > current:",
        "if current is None:",
        "A sink commits an offset beyond the records that its task was given.",
    ),
    Mutant(
        "commit-sink-failed-pre-commit",
        "runtime/sink/offset_commits.py",
        "                self._rewind(committed)\n                return",
        "                return",
        "A sink goes on after a failed pre_commit without reading the records again.",
    ),
    Mutant(
        "commit-sink-offset",
        "runtime/sink/sink_batches.py",
        "ends={partition: last.offset() + 1}",
        "ends={partition: last.offset()}",
        "A sink of columns commits the offset of the last record instead of the next.",
    ),
    Mutant(
        "commit-sink-flush-limit",
        "runtime/sink/offset_commits.py",
        "if partitions is None or key in partitions}",
        "}",
        "Before a rebalance, a sink commits partitions that it keeps.",
    ),
    Mutant(
        "commit-bounded",
        "runtime/source/worker_source_task.py",
        "        while self._ended and self._delivery.behind and self._obey():",
        "        while False:",
        "A scheduled run succeeds although Kafka has not its records.",
        tests=("tests/unit/runtime/source/test_worker_source_task.py",),
    ),
)
