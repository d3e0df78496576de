"""Subscribes a sink task to its ``topics``, or to the topics that match ``topics.regex``, now and later."""

from __future__ import annotations

import difflib
import logging
import math
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from sluiceway.config.connector import TOPICS, TOPICS_REGEX
from sluiceway.config.parsing import parse_list
from sluiceway.config.validators import valid_regex
from sluiceway.errors import ConfigError, ConnectError
from sluiceway.java.regex import compile_java
from sluiceway.runtime.sink.task_consumer import RebalanceListener, TaskConsumer

log = logging.getLogger(__name__)

_REFRESH_SECONDS = 60.0
_REFRESH_SECONDS_WITHOUT_TOPICS = 2.0
_MISSING_SECONDS = 10.0
INTERNAL_TOPICS = {"__consumer_offsets", "__transaction_state", "__share_group_state"}


class TopicList(Protocol):
    """Knows the topics of a cluster."""

    def topics(self) -> list[str]: ...


class Subscription:
    """Keeps a consumer subscribed. Matches patterns itself: librdkafka's differ from Java's (no ``\\d``, no ``(?:``)."""

    def __init__(self, config: Mapping[str, str], waiting: Callable[..., None] = lambda *_: None) -> None:
        """Raise ConfigError unless exactly one of the two keys is set. ``waiting`` shows that there are no such topics."""
        self._waiting = waiting
        self._fixed = parse_list(config.get(TOPICS))
        pattern = config.get(TOPICS_REGEX, "").strip()
        if bool(self._fixed) == bool(pattern):
            raise ConfigError(f"Must configure one of {TOPICS} or {TOPICS_REGEX}, and not both.")
        valid_regex(TOPICS_REGEX, pattern)
        self._regex = pattern
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
        if time.monotonic() < self._next_refresh:
            return
        if self._fixed:
            self._look_for_missing(consumer)
            return
        topics = self._matching(consumer)
        if topics and topics != self.topics:
            log.info("Topics that match topics.regex: %s", ", ".join(topics))
            self.topics = topics
            consumer.subscribe(topics, listener)

    def lacks_topics(self, consumer: TopicList) -> bool:
        """Return whether topics that ``topics`` names are missing now, and show it. Call when a bounded task ends.

        A pattern names no topic, so that one without topics is no mistake.
        """
        if self._fixed and self._next_refresh < math.inf:
            self._look_for_missing(consumer)
        return bool(self._fixed) and self._next_refresh < math.inf

    def _look_for_missing(self, consumer: TopicList) -> None:
        """Show which topics do not exist. Not asked again once all do."""
        try:
            known = consumer.topics()
        except ConnectError as error:  # the consumer itself reports what lasts
            log.debug("Cannot look for missing topics: %s", error)
            self._next_refresh = time.monotonic() + _REFRESH_SECONDS
            return
        missing = [topic for topic in self._fixed if topic not in known]
        self._next_refresh = time.monotonic() + _MISSING_SECONDS if missing else math.inf
        if not missing:
            self._waiting()
            return
        alike = [each for topic in missing for each in difflib.get_close_matches(topic, known, n=1)]
        question = f" Did you mean {', '.join(alike)}?" if alike else ""
        names = f"Topic {missing[0]} does" if len(missing) == 1 else f"Topics {', '.join(missing)} do"
        self._waiting(f"{names} not exist.{question}", _MISSING_SECONDS)

    def _matching(self, consumer: TopicList) -> list[str]:
        found = sorted(topic for topic in consumer.topics() if topic not in INTERNAL_TOPICS and self._pattern.matches(topic))
        self._next_refresh = time.monotonic() + (_REFRESH_SECONDS if found else _REFRESH_SECONDS_WITHOUT_TOPICS)
        if found:
            self._waiting()
        else:
            self._waiting(f"No topic matches topics.regex={self._regex}.", _REFRESH_SECONDS_WITHOUT_TOPICS)
        return found
