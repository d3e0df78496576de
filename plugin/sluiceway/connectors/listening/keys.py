"""Defines what the sources that listen have in common: their keys, and the sockets. Runs on executors."""

from __future__ import annotations

import functools
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sluiceway.api import SourceConnector
from sluiceway.config.definition import ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.validators import NonEmptyString, Range
from sluiceway.errors import ConnectError

TOPIC = "topic"
_LISTENING, _RECORDS = "Listening", "Records"
_MOST = 2**31 - 1
_MEBIBYTE = 1024 * 1024

text = functools.partial(ConfigKey, type=Type.STRING, importance=Importance.MEDIUM)
secret = functools.partial(ConfigKey, type=Type.PASSWORD, default=None, importance=Importance.MEDIUM)
flag = functools.partial(ConfigKey, type=Type.BOOLEAN, importance=Importance.LOW)


def number(name: str, default: int, low: int, group: str, doc: str, most: int = _MOST) -> ConfigKey:
    """Return the key of a whole number from ``low`` to ``most``."""
    return ConfigKey(
        name=name,
        type=Type.LONG,
        default=default,
        validator=Range(low, most),
        importance=Importance.MEDIUM,
        group=group,
        doc=doc,
    )


@dataclass(frozen=True, slots=True)
class Listening:
    """The values of the common keys. Port 0 is any free one."""

    topic: str
    host: str
    port: int
    buffer_items: int
    buffer_bytes: int
    connections: int


def listening_keys(prefix: str, port: int, items: str, full: str) -> list[ConfigKey]:
    """Return the common keys below a prefix. ``items`` is what the buffer holds; ``full`` says what happens if it is full."""
    return [
        text(name=TOPIC, importance=Importance.HIGH, group=_RECORDS, validator=NonEmptyString(), doc="The topic of the records."),
        text(
            name=f"{prefix}host",
            default="127.0.0.1",
            importance=Importance.HIGH,
            group=_LISTENING,
            validator=NonEmptyString(),
            doc="The address to listen on, of the machine where the task runs. 0.0.0.0 is all of its IPv4 addresses, :: those of "
            "IPv6 too. By default, only programs on this machine reach it.",
        ),
        number(f"{prefix}port", port, 0, _LISTENING, "The port to listen on. 0: any free one, which the task's log says.", 65535),
        number(
            f"{prefix}buffer.{items}",
            50_000,
            1,
            _LISTENING,
            f"The most {items} that wait for the task. If there are more, {full}.",
        ),
        number(
            f"{prefix}buffer.bytes",
            64 * _MEBIBYTE,
            _MEBIBYTE,
            _LISTENING,
            f"The most bytes of memory, about, of the {items} that wait for the task.",
        ),
        number(f"{prefix}max.connections", 100, 1, _LISTENING, "The most connections at the same time. More are refused."),
    ]


def listening_of(values: Mapping[str, ConfigValue], prefix: str, items: str) -> Listening:
    """Return the values of the common keys."""
    return Listening(
        topic=str(values[TOPIC]),
        host=str(values[f"{prefix}host"]),
        port=whole(values, f"{prefix}port"),
        buffer_items=whole(values, f"{prefix}buffer.{items}"),
        buffer_bytes=whole(values, f"{prefix}buffer.bytes"),
        connections=whole(values, f"{prefix}max.connections"),
    )


def whole(values: Mapping[str, ConfigValue], name: str) -> int:
    """Return the value of a key of a whole number."""
    value = values[name]
    assert isinstance(value, int)  # noqa: S101 (parsed as such)
    return value


def bound_socket(host: str, port: int, kind: socket.SocketKind, key: str) -> socket.socket:
    """Return a socket that is bound to an address. Raises ConnectError, which names the key of the port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, kind)
    try:
        if kind == socket.SOCK_STREAM:  # for UDP, it would let a second task take the packets
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        made.bind((host, port))
        if kind == socket.SOCK_STREAM:
            made.listen(socket.SOMAXCONN)
    except OSError as error:
        made.close()
        raise ConnectError(
            f"Cannot listen on {host}:{port}: {error.strerror or error}. Stop the process that uses the port, or set {key} to "
            "another one, or the host to an address of the machine where the task runs."
        ) from error
    return made


class ListeningConnector(SourceConnector):
    """Base of the sources that listen. Only one task can listen on a port.

    Exactly once is not possible: what was received and is not in Kafka is lost with the task, or sent again by its client, and
    nothing tells that from a new message. Subclasses keep the config in ``start``.
    """

    _config: dict[str, str]

    @classmethod
    def position_elsewhere(cls, config: Mapping[str, str]) -> str:
        return "There is no position: what is sent to the connector once cannot be asked for again."

    @classmethod
    def start_effects(cls, config: Mapping[str, str]) -> str:
        return "it listens on a port, and takes from clients what they send only once"

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._config]
