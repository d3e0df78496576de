"""Which topics a sink task reads: ``topics``, or those that ``topics.regex`` matches, now and later."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from sluiceway.config.connector import TOPICS, TOPICS_REGEX
from sluiceway.config.parsing import parse_list
from sluiceway.config.validators import valid_regex
from sluiceway.errors import ConfigError
from sluiceway.java.regex import compile_java
from sluiceway.runtime.sink.task_consumer import TaskConsumer

log = logging.getLogger(__name__)

_LOOK_SECONDS = 60.0
_LOOK_SECONDS_WITHOUT_TOPICS = 2.0
_INTERNAL = {"__consumer_offsets", "__transaction_state", "__share_group_state"}


class Subscription:
    """Keeps a consumer subscribed. Patterns are matched here, since librdkafka's are not Java's (no ``\\d``, no ``(?:``)."""

    def __init__(self, config: Mapping[str, str]) -> None:
        """Raises ConfigError unless exactly one of the two keys is given."""
        self._fixed = parse_list(config.get(TOPICS))
        pattern = config.get(TOPICS_REGEX, "").strip()
        if bool(self._fixed) == bool(pattern):
            raise ConfigError(f"Must configure one of {TOPICS} or {TOPICS_REGEX}, and not both.")
        valid_regex(TOPICS_REGEX, pattern)
        self._pattern = compile_java(pattern)
        self._next_look = 0.0
        self.topics: list[str] = []

    def start(self, consumer: TaskConsumer) -> list[str]:
        """Return the topics that are read, before anything is subscribed to."""
        self.topics = self._fixed or self._matching(consumer)
        return self.topics

    def subscribe(self, consumer: TaskConsumer) -> None:
        """Join the group, if there is a topic yet."""
        if self.topics:
            consumer.subscribe(self.topics)

    def refresh_if_due(self, consumer: TaskConsumer) -> None:
        """Look for topics that have come or gone since the last look."""
        if self._fixed or time.monotonic() < self._next_look:
            return
        topics = self._matching(consumer)
        if topics and topics != self.topics:
            log.info("Topics that match now: %s", ", ".join(topics))
            self.topics = topics
            consumer.subscribe(topics)

    def _matching(self, consumer: TaskConsumer) -> list[str]:
        found = sorted(topic for topic in consumer.topics() if topic not in _INTERNAL and self._pattern.matches(topic))
        self._next_look = time.monotonic() + (_LOOK_SECONDS if found else _LOOK_SECONDS_WITHOUT_TOPICS)
        return found
