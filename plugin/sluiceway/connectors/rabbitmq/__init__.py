"""Connectors for RabbitMQ: queues taken message by message, streams read by offset, and a sink that publishes to exchanges."""

from sluiceway.connectors.rabbitmq.queue_source import RabbitQueueSourceConnector
from sluiceway.connectors.rabbitmq.sink import RabbitSinkConnector
from sluiceway.connectors.rabbitmq.stream_source import RabbitStreamSourceConnector

__all__ = ["RabbitQueueSourceConnector", "RabbitSinkConnector", "RabbitStreamSourceConnector"]
