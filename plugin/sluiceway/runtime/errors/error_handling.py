"""Puts a task's error handling together, its dead letter topic included."""

from __future__ import annotations

from sluiceway.config.connector import overrides
from sluiceway.kafka.clients import producer_config
from sluiceway.kafka.dead_letter_headers import ensure_dead_letter_topic
from sluiceway.runtime.errors.dead_letter_queue import DeadLetterQueue
from sluiceway.runtime.errors.error_settings import ErrorSettings
from sluiceway.runtime.errors.retries import Wait
from sluiceway.runtime.errors.retry_with_tolerance import RetryWithToleranceOperator
from sluiceway.runtime.interrupts import check_interrupted
from sluiceway.runtime.task import TaskControl, TaskSpec

# Unlike records, dead letters are given up in the end, and the task with them, while it is still in its consumer group
# (max.poll.interval.ms is 5 minutes). Small buffers: letters come as fast as records do when all of them are bad.
_PRODUCER = {"delivery.timeout.ms": "240000", "queue.buffering.max.messages": "10000", "queue.buffering.max.kbytes": "16384"}


def retry_with_tolerance_operator(spec: TaskSpec, wait: Wait) -> RetryWithToleranceOperator:
    """Return a task's error handling; creates its dead letter topic where that is missing. Runs on an executor.

    ``wait`` is how the task waits for a number of seconds, 0 included; it raises if there is another order. Raises
    ConfigError for wrong settings, KafkaClientError if there is no dead letter topic and none can be created.
    """
    settings = ErrorSettings.of(spec.config)
    dead_letter_queue = None
    if settings.dead_letter_topic:
        ensure_dead_letter_topic(
            spec.worker, settings.dead_letter_topic, settings.dead_letter_replicas, overrides(spec.config, "admin")
        )
        dead_letter_queue = DeadLetterQueue(settings.dead_letter_topic, _letters_config(spec), wait)
    return RetryWithToleranceOperator(spec.config, task=spec.id, wait=wait, dead_letter_queue=dead_letter_queue)


def interruptible_wait(control: TaskControl) -> Wait:
    """Return how a source task waits: until there is another order or the time is over. It raises when told to stop."""

    def wait(seconds: float) -> None:
        check_interrupted(control)
        if seconds > 0:
            control.wait(seconds)
            check_interrupted(control)

    return wait


def _letters_config(spec: TaskSpec) -> dict[str, str]:
    """The connector's producer settings count here too, as in Connect; letters are never part of a transaction."""
    own = {**_PRODUCER, **spec.worker.with_prefix("producer."), **overrides(spec.config, "producer")}
    own.pop("transactional.id", None)
    return producer_config(spec.worker, f"connector-dlq-producer-{spec.id}", own)
