"""Connectors for MQTT: a source of messages, and a sink."""

from sluiceway.connectors.mqtt.sink import MqttSinkConnector
from sluiceway.connectors.mqtt.source import MqttSourceConnector

__all__ = ["MqttSinkConnector", "MqttSourceConnector"]
