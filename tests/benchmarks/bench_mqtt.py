"""Messages per second of one task of MqttSource and MqttSink, beside the client alone.

The peer uses paho-mqtt as its documentation does, with MQTT 5 and QoS 1: it takes the messages of its session, which paho
acknowledges by itself, or publishes with as many unacknowledged ones. Each round does one after the other with the same messages
of 100 bytes; ratios are the medians of the rounds.

Run: python tests/benchmarks/bench_mqtt.py [--records N, up to 65,000] [--rounds N] [--only source,sink]
"""

from __future__ import annotations

import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support import beside_client
from support.beside_client import BesideClient
from support.database import HOST
from support.eventually import LIMIT, eventually
from support.mqtt_server import MqttServer

WINDOW = 1000
PAYLOAD = b"x" * 100


class Bench:
    """The same messages for both."""

    def __init__(self, server: MqttServer, bench: BesideClient) -> None:
        self.server, self.bench, self.records = server, bench, bench.records

    def source(self) -> tuple[float, float]:
        """Return the seconds of the client and of the task for the messages that their sessions have."""
        names = [self.bench.name() for _ in range(2)]
        for name in names:
            self._subscribe(name)
            self._publish(name)
        alone = self._consume(names[0])
        self.bench.create(names[1])
        config = {"connector.class": "MqttSource", "mqtt.topics": names[1], "kafka.topic": names[1], "mqtt.client.id": names[1]}
        return alone, self.bench.task({**config, "mqtt.server.uri": self.server.url}, names[1])

    def sink(self) -> tuple[float, float]:
        """Return the seconds of the client and of the task that publish a topic's records, which a session takes."""
        names = [self.bench.name() for _ in range(2)]
        for name in names:
            self._subscribe(name)
        alone = self._publish(names[0])
        self.bench.fill(names[1], PAYLOAD)
        config = {"connector.class": "MqttSink", "topics": names[1], "mqtt.server.uri": self.server.url}
        seconds = self.bench.task({**config, "mqtt.batch.size": str(WINDOW)})
        self._consume(names[1])
        return alone, seconds

    def _client(self, client_id: str) -> Client:
        client = Client(CallbackAPIVersion.VERSION2, client_id, protocol=MQTTProtocolVersion.MQTTv5)
        client.max_inflight_messages_set(WINDOW)
        client.max_queued_messages_set(0)
        return client

    def _open(self, client: Client) -> None:
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        properties.SessionExpiryInterval = 3600
        properties.ReceiveMaximum = WINDOW
        client.connect(HOST, self.server.port, clean_start=False, properties=properties)
        client.loop_start()

    def _close(self, client: Client) -> None:
        client.disconnect()
        client.loop_stop()

    def _subscribe(self, name: str) -> None:
        """Make a session that gets the messages of a topic, and leave it."""
        client, granted = self._client(name), threading.Event()
        client.on_subscribe = lambda *_: granted.set()
        self._open(client)
        eventually(client.is_connected, what="the connection")
        client.subscribe(name, 1)
        assert granted.wait(LIMIT)
        self._close(client)

    def _publish(self, topic: str) -> float:
        client = self._client("")
        self._open(client)
        eventually(client.is_connected, what="the connection")
        began = time.perf_counter()
        for _ in range(self.records):
            last = client.publish(topic, PAYLOAD, 1)
        last.wait_for_publish(10 * LIMIT)
        seconds = time.perf_counter() - began
        self._close(client)
        return seconds

    def _consume(self, name: str) -> float:
        client, count = self._client(name), 0

        def on_message(*_: Any) -> None:
            nonlocal count
            count += 1

        client.on_message = on_message
        began = time.perf_counter()
        self._open(client)
        eventually(lambda: count >= self.records, within=10 * LIMIT, what="the messages")
        seconds = time.perf_counter() - began
        self._close(client)
        return seconds


def main() -> None:
    options = beside_client.parser(__doc__, records=50_000, only="source,sink").parse_args()
    with beside_client.beside_client(options) as beside, closing(MqttServer(f"max_inflight_messages {WINDOW}\n")) as server:
        server.start()
        bench = Bench(server, beside)
        beside.compare({"source": bench.source, "sink": bench.sink})


if __name__ == "__main__":
    main()
