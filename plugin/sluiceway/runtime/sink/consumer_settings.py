"""The config of a sink task's consumer. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway.config.connector import overrides
from sluiceway.config.consumer_group import sink_group
from sluiceway.config.intervals import POSITIONS
from sluiceway.kafka.clients import consumer_config, java_consumer_config
from sluiceway.runtime.task import TaskSpec

_BATCH_SIZE = 500  # the default of max.poll.records in Java; larger batches are no faster
_COLUMNS_BATCH_SIZE = 4000
_SESSION_MS = 10_000
_FETCH_WAIT_MS = "500"  # as in Java; an idle task sends a request that often


def sink_consumer(spec: TaskSpec, *, columns: bool = False) -> tuple[dict[str, str], int]:
    """Return the config of a sink task's consumer, and the largest number of records for one ``put``.

    ``columns`` says that the task takes columns, which have a cost for each batch.
    """
    own = overrides(spec.config, "consumer")
    default = _COLUMNS_BATCH_SIZE if columns else _BATCH_SIZE
    most = int(own.get("max.poll.records") or spec.worker.raw.get("consumer.max.poll.records") or default)
    # Java's consumer creates missing topics too. Ends of partitions only matter to a task that ends there.
    defaults = {"allow.auto.create.topics": "true", "enable.partition.eof": str(spec.bounded).lower()}
    group = sink_group(spec.worker, spec.id.connector, spec.config)
    # A bounded task waits as long for the end of a partition.
    idle = {} if spec.bounded else {"fetch.wait.max.ms": _FETCH_WAIT_MS}
    settings = consumer_config(spec.worker, f"connector-consumer-{spec.id}", group, {**defaults, **own}, defaults=idle)
    if settings.get("group.protocol", "").strip().lower() != "consumer":  # with it, the brokers set the timeout
        settings.setdefault("session.timeout.ms", str(_session_ms(settings)))
    if POSITIONS in spec.config:  # what retention has deleted of an interval must not skip the rest
        settings["auto.offset.reset"] = "earliest"
    if settings["auto.offset.reset"] == "none":
        settings["auto.offset.reset"] = "error"  # librdkafka's name for it
    return settings, most


def java_sink_consumer(spec: TaskSpec, most: int) -> dict[str, str] | None:
    """Return the config of the Java consumer of a Java task that reads its records itself, None if it must not.

    ``most`` is the largest number of records for one ``put``. A bounded task must not: it needs the ends of partitions, and a
    quick start more than speed.
    """
    if spec.bounded:
        return None
    group = sink_group(spec.worker, spec.id.connector, spec.config)
    return java_consumer_config(spec.worker, f"connector-consumer-{spec.id}", group, overrides(spec.config, "consumer"), most)


def _session_ms(settings: Mapping[str, str]) -> int:
    """Return how long the group waits for a task that was killed, in milliseconds: 10 s, instead of the default of 45 s.

    librdkafka sends heartbeats from its own thread, so neither a slow ``put`` nor Python delays them. Static membership
    would recover faster, but librdkafka's static members never leave, so each stop and scale-down would have to wait.
    """
    heartbeat = int(settings.get("heartbeat.interval.ms", "3000"))
    return min(max(_SESSION_MS, 3 * heartbeat), int(settings.get("max.poll.interval.ms", "300000")))
