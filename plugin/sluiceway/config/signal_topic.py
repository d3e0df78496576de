"""Signals, and the topic of the Kafka channel as a connector's config names it. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

KAFKA = "kafka"
CHANNELS_KEY = "signal.enabled.channels"
TOPIC_KEY = "signal.kafka.topic"
BOOTSTRAP_KEY = "signal.kafka.bootstrap.servers"
PREFIX_KEY = "topic.prefix"
TYPES = ("execute-snapshot", "stop-snapshot", "pause-snapshot", "resume-snapshot", "log")
"""The types of signals that connectors written in Python execute. Debezium's take others besides."""

_CONSUMER = "signal.consumer."


class Signal(NamedTuple):
    id: str
    type: str
    data: Mapping[str, Any]


class SignalTopic(NamedTuple):
    """A connector's signal topic. Records with the key are for the connector.

    ``properties`` are the Java consumer's, with ``bootstrap.servers``, which is empty if the config names no brokers.
    """

    name: str
    key: str
    properties: Mapping[str, str]

    @classmethod
    def of(cls, config: Mapping[str, str]) -> SignalTopic:
        """Return the topic that a config names. The keys and their defaults are Debezium's."""
        prefix = config.get(PREFIX_KEY) or ""
        own = {key.removeprefix(_CONSUMER): value for key, value in config.items() if key.startswith(_CONSUMER)}
        servers = own.get("bootstrap.servers") or config.get(BOOTSTRAP_KEY) or ""
        return cls(config.get(TOPIC_KEY) or f"{prefix}-signal", prefix, {**own, "bootstrap.servers": servers})


def enabled_channels(config: Mapping[str, str]) -> frozenset[str]:
    """Return the channels that a config enables, in lower case."""
    names = config.get(CHANNELS_KEY) or "source"
    return frozenset(name.strip().lower() for name in names.split(",") if name.strip())
