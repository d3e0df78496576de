"""Parses a connector's ``errors.*`` keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluiceway.config.common_keys import CONNECTOR
from sluiceway.config.definition import ConfigDef
from sluiceway.config.sink_keys import DLQ_TOPIC, SINK

_PREFIX = "errors."
_KEYS = ConfigDef([key for definition in (CONNECTOR, SINK) for key in definition if key.name.startswith(_PREFIX)])


@dataclass(frozen=True, slots=True)
class ErrorSettings:
    """A connector's error handling (KIP-298).

    The same for sources and sinks. Connect has a dead letter queue for sinks only.
    """

    tolerant: bool = False
    """``errors.tolerance`` is ``all``: bad records are skipped and the task continues."""

    retry_seconds: float = 0.0
    """The time to retry an operation that raises RetriableError; infinite for ``errors.retry.timeout=-1``."""

    retry_delay_seconds: float = 60.0
    """The longest wait between two attempts."""

    log: bool = False
    log_messages: bool = False
    dead_letter_topic: str = ""
    dead_letter_replicas: int = 3
    dead_letter_headers: bool = False

    @classmethod
    def of(cls, config: Mapping[str, str]) -> ErrorSettings:
        """Parse a connector's config. Raises ConfigError."""
        values = _KEYS.parse({key: value for key, value in config.items() if key.startswith(_PREFIX)})
        timeout = int(str(values["errors.retry.timeout"]))
        return cls(
            tolerant=values["errors.tolerance"] == "all",
            retry_seconds=float("inf") if timeout < 0 else timeout / 1000,
            retry_delay_seconds=max(0, int(str(values["errors.retry.delay.max.ms"]))) / 1000,
            log=bool(values["errors.log.enable"]),
            log_messages=bool(values["errors.log.include.messages"]),
            dead_letter_topic=str(values[DLQ_TOPIC] or "").strip(),
            dead_letter_replicas=int(str(values["errors.deadletterqueue.topic.replication.factor"])),
            dead_letter_headers=bool(values["errors.deadletterqueue.context.headers.enable"]),
        )

    @property
    def reports_errors(self) -> bool:
        """True if bad records are logged or sent to the dead letter queue. Only then has a sink task a reporter (KIP-610)."""
        return self.log or bool(self.dead_letter_topic)
