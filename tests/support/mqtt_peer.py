"""A client of an MQTT broker for tests, beside the connectors."""

from __future__ import annotations

import threading
from typing import Any

from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from support.database import HOST
from support.eventually import LIMIT, eventually
from support.mqtt_server import MqttServer


class Peer:
    """A client of the broker beside the connectors. ``received`` has what came of the topics that it has subscribed to.

    It connects and subscribes again to a broker that was away.
    """

    def __init__(self, server: MqttServer, *filters: str) -> None:
        self.received: list[tuple[str, bytes, bool]] = []
        self._subscribed = threading.Event()
        self._client = client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
        client.max_queued_messages = 0
        client.on_message = lambda *args: self.received.append((args[2].topic, args[2].payload, args[2].retain))
        client.on_subscribe = lambda *_: self._subscribed.set()
        self._filters = [(each, 1) for each in filters]
        client.on_connect = self._subscribe
        client.reconnect_delay_set(1, 1)
        client.connect(HOST, server.port)
        client.loop_start()
        if filters:
            assert self._subscribed.wait(LIMIT)

    def _subscribe(self, *_: object) -> None:
        if self._filters:
            self._client.subscribe(self._filters)

    def send(self, topic: str, *payloads: bytes, qos: int = 1, retain: bool = False, **properties: Any) -> None:
        """Publish messages, and wait until the broker has them."""
        more = None
        if properties:
            more = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
            for name, value in properties.items():
                setattr(more, name, value)
        for each in [self._client.publish(topic, payload, qos, retain, more) for payload in payloads]:
            each.wait_for_publish(LIMIT)
            assert each.is_published()

    def payloads(self, count: int) -> list[bytes]:
        eventually(lambda: len(self.received) >= count, what=f"{count} messages")
        return [payload for _topic, payload, _retain in self.received]

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()
