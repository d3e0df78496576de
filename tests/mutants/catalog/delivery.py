"""Delivery: no record is lost, none is acknowledged before Kafka has it, the order is kept."""

from mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "delivery-one-in-flight",
        "kafka/clients.py",
        "Producer({**_ONE_IN_FLIGHT, **config}, logger=log)",
        "Producer({**config}, logger=log)",
        "The first records for a partition that is being created are lost.",
    ),
    Mutant(
        "delivery-retry-record",
        "runtime/source/record_sender.py",
        "                self._produce_one(topic, values[taken(values, left) - 1], None, {})",
        "                pass",
        "A record that meets a full buffer is lost.",
    ),
    Mutant(
        "delivery-lost-record",
        "runtime/source/record_sender.py",
        "        self._raise_failure()\n        if self._failed_sends:\n            self._failed_sends.resend(self._interrupt)",
        "        if self._failed_sends:\n            self._failed_sends.resend(self._interrupt)",
        "A source task goes on after Kafka has lost a record.",
    ),
    Mutant(
        "delivery-acknowledged-early",
        "runtime/source/submitted_records.py",
        "        if not self._left:\n",
        "        if self._left >= 0:\n",
        "A record is acknowledged to the task after the first of the records made from it.",
    ),
    Mutant(
        "delivery-java-acknowledged-early",
        "java_plugins/acknowledgements.py",
        '        self._places = array("q")\n',
        "        self._places = released\n",
        "A Java task learns of a record whose transaction may be aborted.",
    ),
    Mutant(
        "delivery-java-polled-ahead",
        "java_plugins/source_task.py",
        "if whole and not self.observes and",
        "if whole and",
        "A Java task is polled ahead although its commit() or commitRecord() must come first.",
    ),
    Mutant(
        "delivery-filtered",
        "runtime/source/record_sender.py",
        "                    acknowledge(source, -1, -1)",
        "                    pass",
        "A filtered record is never acknowledged to the task.",
    ),
    Mutant(
        "delivery-sources-before",
        "runtime/source/submitted_records.py",
        "return self.sources[: position if self.origins is None else self.origins[position]]",
        "return self.sources[: position + 1 if self.origins is None else self.origins[position] + 1]",
        "The offset of a record that could not be sent is stored.",
    ),
    Mutant(
        "delivery-interrupted-part",
        "runtime/sink/worker_sink_task.py",
        "for partition, offset in starts.items() if partition not in self._gone})\n            raise",
        "for partition, offset in starts.items() if False})\n            raise",
        "A sink's records that were not put because of a pause are lost.",
    ),
    Mutant(
        "delivery-sink-retry",
        "runtime/sink/worker_sink_task.py",
        "            self._wait(seconds)\n            self._drop_lost(batch)\n",
        "            self._wait(seconds)\n            return batch, seconds\n",
        "A sink does not repeat put() after a RetriableError.",
    ),
    Mutant(
        "delivery-early-seek",
        "runtime/sink/seeks.py",
        "return [message for message in messages if partition_of(message) not in wrong] if wrong else messages",
        "return messages",
        "A sink gets records from before the offset that it asked for.",
    ),
    Mutant(
        "delivery-last-of-transforms",
        "runtime/transforms/batch_transform.py",
        "for position, records in recovered.items() for record in records]",
        "for position, records in recovered.items() for record in records[:1]]",
        "Of several records that a retried transform made of one, only the first is delivered.",
    ),
    Mutant(
        "delivery-columns-sources-before",
        "runtime/source/column_encoder.py",
        "            if sent > position:",
        "            if sent >= position:",
        "After a failure, records of a batch of columns that Kafka has are sent again.",
    ),
)
