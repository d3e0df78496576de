"""Tolerance, dead letter queue, and the errant record reporter."""

from mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "dead-letter-tolerance",
        "runtime/errors/error_settings.py",
        'tolerant=values["errors.tolerance"] == "all",',
        "tolerant=True,",
        "Bad records are skipped although errors.tolerance is none.",
    ),
    Mutant(
        "dead-letter-timestamp",
        "runtime/errors/dead_letter_record.py",
        "timestamp = original.timestamp if original.timestamp_type and original.timestamp >= 0 else None",
        "timestamp = None",
        "A dead letter queue record has another timestamp than the record.",
    ),
    Mutant(
        "dead-letter-context",
        "runtime/errors/dead_letter_record.py",
        "    if context_headers:\n",
        "    if not context_headers:\n",
        "Dead letter queue records have no error headers although they are enabled.",
    ),
    Mutant(
        "dead-letter-offset-header",
        "runtime/errors/dead_letter_record.py",
        '"partition": original.partition, "offset": original.offset}',
        '"partition": original.partition, "offset": original.partition}',
        "The header of a dead letter queue record names another offset.",
    ),
    Mutant(
        "dead-letter-original",
        "runtime/errors/errant_record_reporter.py",
        "_with_original(record, consumer_record_of(sources[origin]))",
        "_with_original(record, consumer_record_of(sources[0]))",
        "A reported record goes to the dead letter queue with another record's bytes.",
    ),
    Mutant(
        "dead-letter-pending",
        "runtime/errors/dead_letter_queue.py",
        "        return not self._pending\n",
        "        return True\n",
        "Offsets are committed before Kafka has the dead letter queue records.",
    ),
    Mutant(
        "dead-letter-lost",
        "runtime/errors/dead_letter_queue.py",
        "        if self._failure is None:\n            self._failure = failure",
        "        if False:\n            self._failure = failure",
        "The loss of a dead letter queue record does not fail the task.",
    ),
    Mutant(
        "dead-letter-caught",
        "runtime/errors/errant_record_reporter.py",
        "            self._raised = self._raised or raised\n",
        "",
        "A task that catches the error of report() goes on although errors are not tolerated.",
    ),
    Mutant(
        "dead-letter-source-rejected",
        "runtime/source/failed_sends.py",
        "        if not is_record_error(error):\n            raise error\n",
        "",
        "A source skips records because of an error of the cluster.",
    ),
    Mutant(
        "dead-letter-own-transactions",
        "kafka/clients.py",
        "    if config.pop(_TRANSACTIONAL_ID, None) is not None:\n",
        "    if config.get(_TRANSACTIONAL_ID) is not None:\n",
        "The dead letter queue's producer takes over the task's transactional id.",
        tests=("tests/unit/runtime/errors/test_error_handling.py", "tests/unit/kafka/test_clients.py"),
    ),
)
