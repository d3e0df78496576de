"""Subscribes a sink task to its ``topics``, or to the topics that match ``topics.regex``, now and later."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Protocol

from sluiceway.config.connector import TOPICS, TOPICS_REGEX
from sluiceway.config.parsing import parse_list
from sluiceway.config.validators import valid_regex
from sluiceway.errors import ConfigError
from sluiceway.java.regex import compile_java
from sluiceway.runtime.sink.task_consumer import RebalanceListener, TaskConsumer

log = logging.getLogger(__name__)

_REFRESH_SECONDS = 60.0
_REFRESH_SECONDS_WITHOUT_TOPICS = 2.0
_INTERNAL = {"__consumer_offsets", "__transaction_state", "__share_group_state"}


class TopicList(Protocol):
    """Knows the topics of a cluster."""

    def topics(self) -> list[str]: ...


class Subscription:
    """Keeps a consumer subscribed. Matches patterns itself: librdkafka's differ from Java's (no ``\\d``, no ``(?:``)."""

    def __init__(self, config: Mapping[str, str]) -> None:
        """Raise ConfigError unless exactly one of the two keys is set."""
        self._fixed = parse_list(config.get(TOPICS))
        pattern = config.get(TOPICS_REGEX, "").strip()
        if bool(self._fixed) == bool(pattern):
            raise ConfigError(f"Must configure one of {TOPICS} or {TOPICS_REGEX}, and not both.")
        valid_regex(TOPICS_REGEX, pattern)
        self._pattern = compile_java(pattern)
        self._next_refresh = 0.0
        self.topics: list[str] = []

    def find_topics(self, consumer: TopicList) -> list[str]:
        """Return the topics to read. Call before ``subscribe``."""
        self.topics = self._fixed or self._matching(consumer)
        return self.topics

    def subscribe(self, consumer: TaskConsumer, listener: RebalanceListener) -> None:
        """Join the consumer group, if there are topics."""
        if self.topics:
            consumer.subscribe(self.topics, listener)

    def refresh_if_due(self, consumer: TaskConsumer, listener: RebalanceListener) -> None:
        """Subscribe to topics created since the last refresh, and unsubscribe from deleted ones."""
        if self._fixed or time.monotonic() < self._next_refresh:
            return
        topics = self._matching(consumer)
        if topics and topics != self.topics:
            log.info("Topics that match topics.regex: %s", ", ".join(topics))
            self.topics = topics
            consumer.subscribe(topics, listener)

    def _matching(self, consumer: TopicList) -> list[str]:
        found = sorted(topic for topic in consumer.topics() if topic not in _INTERNAL and self._pattern.matches(topic))
        self._next_refresh = time.monotonic() + (_REFRESH_SECONDS if found else _REFRESH_SECONDS_WITHOUT_TOPICS)
        return found
