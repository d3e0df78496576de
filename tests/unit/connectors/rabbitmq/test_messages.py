"""Headers of messages, what pika's errors mean, and the keys of the sources, without a server."""

from __future__ import annotations

import pickle
import ssl
import struct
from datetime import datetime, timezone
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.connectors.errors import LoginError, RefusedError, UnreachableError
from sluiceway.connectors.rabbitmq import RabbitQueueSourceConnector, RabbitStreamSourceConnector
from sluiceway.connectors.rabbitmq.connection import Server, server_of
from sluiceway.connectors.rabbitmq.messages import headers_of
from sluiceway.connectors.rabbitmq.queue_source import CONFIG, options_of
from sluiceway.connectors.rabbitmq.session import _pika, meaning_of
from sluiceway.connectors.rabbitmq.sink import _take
from sluiceway.errors import ConfigError, ConnectError

SERVER = Server(("rabbit",), 5672, "/", "me", "hush", 1.0, 1.0, 60, 1.0)
DELIVERY = SimpleNamespace(redelivered=True, exchange="e", routing_key="k")


def decoded(table: dict[str, Any]) -> dict[str, Any]:
    """Return a table as it comes from the server."""
    pika, pieces = _pika(), list[bytes]()
    pika.data.encode_table(pieces, table)
    found: dict[str, Any] = pika.data.decode_table(b"".join(pieces), 0)[0]
    return found


@pytest.mark.parametrize(("kind", "form"), [(b"d", ">d"), (b"f", ">f")])
def test_floats_of_headers_keep_their_decimal_places(kind: bytes, form: str) -> None:
    encoded = b"\x01a" + kind + struct.pack(form, -1.5) + b"\x01bt\x01"
    table, _end = _pika().data.decode_table(struct.pack(">I", len(encoded)) + encoded, 0)
    assert table == {"a": -1.5, "b": True}


VALUES = st.one_of(
    *(st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.text(st.characters(exclude_categories=["Cs"]), max_size=20)),
    st.binary(max_size=20),
)


@given(st.dictionaries(st.text("abcxyz-.", min_size=1, max_size=20), VALUES, max_size=5))
def test_headers_that_are_read_are_written_the_same(table: dict[str, Any]) -> None:
    table = {name: value for name, value in table.items() if name != "x-stream-offset"}
    read = headers_of(DELIVERY, _pika().BasicProperties(headers=decoded(table), message_id="7", priority=3))
    properties: dict[str, Any] = {}
    headers: dict[str, Any] = {}
    for header in read:
        _take(header.key, header.value, properties, headers)
    text = {name: value.decode() if isinstance(value, bytes) and is_text(value) else value for name, value in table.items()}
    assert {name: as_text(value) for name, value in headers.items()} == {name: as_text(value) for name, value in text.items()}
    assert properties == {"message_id": "7", "priority": 3}


def is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def as_text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) and is_text(value) else value


def test_tables_arrays_times_and_decimals_are_texts() -> None:
    time = datetime(2026, 1, 31, tzinfo=timezone.utc)
    table = {"death": [{"count": 1, "time": time, "raw": b"\xff", "big": 2**40}], "time": time, "price": Decimal("1.10")}
    found = {header.key: header.value for header in headers_of(DELIVERY, _pika().BasicProperties(headers=decoded(table)))}
    assert found["rabbitmq.death"] == '[{"count":1,"time":"2026-01-31T00:00:00+00:00","raw":"\ufffd","big":1099511627776}]'
    assert (found["rabbitmq.time"], found["rabbitmq.price"]) == ("2026-01-31T00:00:00+00:00", "1.1")
    assert (found["rabbitmq.redeliver"], found["rabbitmq.exchange"], found["rabbitmq.routing.key"]) == (True, "e", "k")


def tls(error: ssl.SSLError) -> ssl.SSLError:
    error.reason = "AS_OPENSSL_SAYS"
    return error


def closed(code: int, text: str) -> Exception:
    error: Exception = _pika().exceptions.ChannelClosedByBroker(code, text)
    return error


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (closed(404, "NOT_FOUND - no queue 'a' in vhost '/'"), UnreachableError),
        (closed(404, "NOT_FOUND - home node 'r@h' of durable queue 'a' in vhost '/' is down or inaccessible"), UnreachableError),
        (closed(404, "NOT_FOUND - no exchange 'a' in vhost '/'"), RefusedError),
        (closed(403, "ACCESS_REFUSED - queue 'a' in vhost '/' in exclusive use"), UnreachableError),
        (closed(403, "ACCESS_REFUSED - access to queue 'a' in vhost '/' refused for user 'me'"), RefusedError),
        (closed(405, "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'a'"), UnreachableError),
        (closed(406, "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out"), UnreachableError),
        (closed(406, "PRECONDITION_FAILED - unknown delivery tag 7"), RefusedError),
        (closed(320, "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'"), UnreachableError),
        (_pika().exceptions.StreamLostError("gone"), UnreachableError),
        (_pika().exceptions.AMQPHeartbeatTimeout("late"), UnreachableError),
        (_pika().exceptions.IncompatibleProtocolError("reset while it connected"), UnreachableError),
        (_pika().exceptions.ProbableAuthenticationError("StreamLostError"), UnreachableError),
        (_pika().exceptions.ProbableAuthenticationError("ConnectionClosedByBroker: (403) 'ACCESS_REFUSED'"), LoginError),
        (_pika().exceptions.ProbableAccessDeniedError("(530) 'NOT_ALLOWED - vhost a not found'"), LoginError),
        (_pika().exceptions.ProbableAccessDeniedError("(530) 'NOT_ALLOWED - vhost a is down'"), UnreachableError),
        (_pika().exceptions.AMQPConnectionError(OSError(111, "refused")), UnreachableError),
        (_pika().exceptions.InvalidFieldTypeException(b"?"), ConnectError),
        (tls(ssl.SSLCertVerificationError(1, "self-signed")), LoginError),
        (tls(ssl.SSLEOFError(8, "end")), UnreachableError),
    ],
)
def test_what_passes_is_tried_again_and_what_does_not_is_told(error: Exception, meaning: type[Exception]) -> None:
    found = meaning_of(error, SERVER, "rabbit:5672")
    assert type(found) is meaning
    assert str(found).startswith("RabbitMQ at rabbit:5672")
    assert "hush" not in str(found)
    again = pickle.loads(pickle.dumps(found))  # noqa: S301
    assert (type(again), str(again), vars(again)) == (meaning, str(found), vars(found))


@pytest.mark.parametrize(
    ("config", "key", "message"),
    [
        ({"rabbitmq.queue": ""}, "rabbitmq.queue", "must not be empty"),
        ({"rabbitmq.queue": "a,a"}, "rabbitmq.queue", "duplicated"),
        ({"rabbitmq.queue": "a", "rabbitmq.prefetch.count": "0"}, "rabbitmq.prefetch.count", "at least 1"),
        ({"rabbitmq.queue": "a", "rabbitmq.values": "json"}, "rabbitmq.values", "must be one of"),
        ({"rabbitmq.queue": "orders:eu"}, "kafka.topic", "cannot have the name of orders:eu"),
        ({"rabbitmq.queue": "a", "rabbitmq.shutdown.timeout.ms": "1"}, "rabbitmq.shutdown.timeout.ms", "has no counterpart"),
        ({"rabbitmq.queue": "a", "rabbitmq.virtual.host": ""}, "rabbitmq.virtual.host", "non-empty"),
    ],
)
@pytest.mark.parametrize("kind", [RabbitQueueSourceConnector, RabbitStreamSourceConnector])
def test_keys_are_checked_by_name(
    kind: type[RabbitQueueSourceConnector | RabbitStreamSourceConnector], config: dict[str, str], key: str, message: str
) -> None:
    found = kind.check(config)
    assert {name for name, each in found.items() if each.errors} == {key}
    assert message in found[key].errors[0]


@pytest.mark.parametrize("begin", ["", "begin", "-1", "²", "2026-99-99", "1.5"])
def test_a_stream_begins_at_an_offset_or_a_time(begin: str) -> None:
    found = RabbitStreamSourceConnector.check({"rabbitmq.queue": "a", "rabbitmq.stream.offset": begin})
    assert {name for name, each in found.items() if each.errors} == {"rabbitmq.stream.offset"}


def test_a_server_is_of_the_keys_and_shows_no_password() -> None:
    given = {"rabbitmq.queue": "a,b", "rabbitmq.host": "r1, r2,::1", "rabbitmq.password": "hush"}
    options = options_of({**given, "rabbitmq.prefetch.count": "5"})
    server = options.source.server
    assert (server.hosts, server.name, server.tls) == (("r1", "r2", "::1"), "r1,r2,::1:5672", None)
    assert "hush" not in repr(options)
    assert (options.held, options_of({**given, "rabbitmq.prefetch.global": "true"}).held) == (10, 2000)
    tls = server_of(CONFIG.parse({**given, "rabbitmq.security.protocol": "ssl"})).tls
    assert tls is not None
    with pytest.raises(ConfigError, match=r"rabbitmq.host"):
        options_of({**given, "rabbitmq.host": "amqp://r"})
