"""The servers of queue connectors for tests, each of which can be away for a while and come back with what it had."""

from __future__ import annotations

import abc
import signal
from typing import ClassVar

from support.aws_server import AwsServer
from support.database import HOST
from support.faults.proxy import TcpProxy
from support.http_server import HttpServer
from support.mqtt_server import MqttServer
from support.nats_server import NatsServer
from support.rabbitmq_server import RabbitServer
from support.redis_server import RedisServer


class System(abc.ABC):
    """A server, which runs until ``close``."""

    says: ClassVar[str]
    """The name that a task's status has for the server while it is away."""
    deadline: ClassVar[float] = 2.0
    """Seconds after which the server takes back what it has given to a client that is silent, or disconnects it."""
    forgets: ClassVar[bool] = False
    """Whether the server, once restarted, loses messages that come before its client has connected again."""
    is_slow: ClassVar[bool] = False
    """Whether the server takes long for many messages, so that they must not pile up while it is away."""
    crash: ClassVar[signal.Signals] = signal.SIGKILL
    """The signal that ends the server."""

    def __init__(self, topic: str, *, hasty: bool = False) -> None:
        """Start the server for a topic of Kafka. ``hasty``: with short deadlines."""
        self.topic, self.hasty = topic, hasty
        self.start()

    @abc.abstractmethod
    def start(self) -> None: ...

    @abc.abstractmethod
    def away(self) -> None:
        """End the server, or its network."""

    @abc.abstractmethod
    def back(self) -> None:
        """Let the server be there again."""

    @abc.abstractmethod
    def close(self) -> None: ...


class RabbitSystem(System):
    says = "RabbitMQ at 127.0.0.1"

    def start(self) -> None:
        self.server = RabbitServer(consumer_timeout=self.deadline if self.hasty else 1800)
        self.server.start()

    def away(self) -> None:
        self.server.end(self.crash)

    def back(self) -> None:
        self.server.start()

    def close(self) -> None:
        self.server.close()

    @property
    def connection(self) -> dict[str, str]:
        """The keys of the connection."""
        heartbeat = {"rabbitmq.requested.heartbeat.seconds": "1"} if self.hasty else {}
        return {**self.server.config, "rabbitmq.network.recovery.interval.ms": "1000", **heartbeat}


class RedisSystem(System):
    says = "Redis at redis://127.0.0.1"

    def start(self) -> None:
        from redis import Redis

        self.server = RedisServer(durable=True)
        self.server.start()
        self.client = Redis.from_url(self.server.url)
        if self.hasty:
            self.client.config_set("timeout", int(self.deadline))  # after which an idle client is disconnected

    def away(self) -> None:
        self.server.end(self.crash)

    def back(self) -> None:
        self.server.start()

    def close(self) -> None:
        self.client.close()
        self.server.close()


class NatsSystem(System):
    says = "NATS at 127.0.0.1"

    def start(self) -> None:
        self.server = NatsServer()
        self.server.start()

    def away(self) -> None:
        self.server.end(self.crash)

    def back(self) -> None:
        self.server.start()

    def close(self) -> None:
        self.server.close()

    @property
    def connection(self) -> dict[str, str]:
        """The keys of the connection."""
        return {**self.server.config, "nats.reconnect.max.ms": "1000"}


class MqttSystem(System):
    says = "MQTT broker"

    def start(self) -> None:
        self.server = MqttServer()
        self.server.start()

    def away(self) -> None:
        self.server.end()  # it saves sessions and messages

    def back(self) -> None:
        self.server.start()

    def close(self) -> None:
        self.server.close()

    @property
    def connection(self) -> dict[str, str]:
        """The keys of the connection. A hasty broker disconnects a client after one and a half seconds of silence."""
        return {"mqtt.server.uri": self.server.url, **({"mqtt.keepalive.interval.seconds": "1"} if self.hasty else {})}


class AwsSystem(System):
    """A service, which is away when a proxy before it refuses connections: the imitation forgets all when it ends."""

    service: ClassVar[str]
    is_slow = True

    def start(self) -> None:
        self.server = AwsServer()
        self.server.__enter__()
        self.proxy = TcpProxy(self.server.port)

    def away(self) -> None:
        self.proxy.drop()

    def back(self) -> None:
        self.proxy.restore()

    def close(self) -> None:
        self.proxy.close()
        self.server.__exit__(None, None, None)

    @property
    def connection(self) -> dict[str, str]:
        """The keys of the connection."""
        return self.server.config(self.service, f"http://{HOST}:{self.proxy.port}")


class HttpSystem(System):
    says = "127.0.0.1"

    def start(self) -> None:
        self.server = HttpServer()
        self.server.start()

    def away(self) -> None:
        self.server.stop()

    def back(self) -> None:
        self.server.start()

    def close(self) -> None:
        self.server.stop()
