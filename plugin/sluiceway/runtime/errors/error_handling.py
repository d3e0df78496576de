"""Creates a task's error handling, including its dead letter queue topic and producer."""

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
from sluiceway.runtime.waits import Waits

# The delivery timeout is below max.poll.interval.ms (5 minutes): a dead letter queue that is away must fail the task while it
# is still in its consumer group. The buffers are small because bad records may arrive at full speed.
_PRODUCER = {"delivery.timeout.ms": "240000", "queue.buffering.max.messages": "10000", "queue.buffering.max.kbytes": "16384"}


def retry_with_tolerance_operator(spec: TaskSpec, wait: Wait, waits: Waits | None = None) -> RetryWithToleranceOperator:
    """Return a task's error handling. Creates the dead letter queue topic if it does not exist. Runs on an executor.

    ``wait`` waits for a number of seconds, which may be 0, and raises if the task gets another command. ``waits``
    shows retries. Raises ConfigError for invalid settings and KafkaClientError if the dead letter queue topic cannot be created.
    """
    settings = ErrorSettings.of(spec.config)
    dead_letter_queue = None
    if settings.dead_letter_topic:
        ensure_dead_letter_topic(
            spec.worker, settings.dead_letter_topic, settings.dead_letter_replicas, overrides(spec.config, "admin")
        )
        dead_letter_queue = DeadLetterQueue(settings.dead_letter_topic, _dead_letter_queue_producer(spec), wait)
    return RetryWithToleranceOperator(spec.config, task=spec.id, wait=wait, dead_letter_queue=dead_letter_queue, waits=waits)


def interruptible_wait(control: TaskControl) -> Wait:
    """Return a source task's wait: until the command changes or the time is over. It raises if the task must stop."""

    def wait(seconds: float) -> None:
        check_interrupted(control)
        if seconds > 0:
            control.wait(seconds)
            check_interrupted(control)

    return wait


def _dead_letter_queue_producer(spec: TaskSpec) -> dict[str, str]:
    """Return the producer's config: the worker's and connector's settings apply, as in Connect."""
    own = {**_PRODUCER, **spec.worker.with_prefix("producer."), **overrides(spec.config, "producer")}
    return producer_config(spec.worker, f"connector-dlq-producer-{spec.id}", own)
