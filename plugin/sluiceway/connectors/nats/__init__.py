"""Connectors for NATS JetStream: streams read by sequence or by a durable consumer, and a sink."""

from sluiceway.connectors.nats.consumer_source import NatsConsumerSourceConnector
from sluiceway.connectors.nats.sink import NatsSinkConnector
from sluiceway.connectors.nats.stream_source import NatsStreamSourceConnector

__all__ = ["NatsConsumerSourceConnector", "NatsSinkConnector", "NatsStreamSourceConnector"]
