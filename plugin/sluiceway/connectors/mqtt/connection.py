"""The connection to an MQTT broker: its keys, the session, and its answers. Runs on executors and, to validate, on drivers.

Versions 5 and 3.1.1 of the protocol are OASIS's standards; paho-mqtt is the client.
"""

from __future__ import annotations

import functools
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sluiceway.config.definition import ConfigKey, ConfigValue, Importance, Type, ValidatedValue
from sluiceway.config.password import revealed
from sluiceway.config.validators import Check, EnumText, NonEmptyString
from sluiceway.connectors.checked_connector import CheckedConnector
from sluiceway.connectors.errors import LoginError, UnreachableError
from sluiceway.connectors.keys import flag, text, whole
from sluiceway.errors import ConfigError, MissingToolError
from sluiceway.installation import install_command

if TYPE_CHECKING:
    from paho.mqtt.client import Client, MQTTMessage

URI, USER, PASSWORD = "mqtt.server.uri", "mqtt.username", "mqtt.password"
CLIENT_ID, VERSION = "mqtt.client.id", "mqtt.version"
TIMEOUT, KEEP_ALIVE = "mqtt.connect.timeout.seconds", "mqtt.keepalive.interval.seconds"
CONNECTION = "Connection"
V5, V3 = "5", "3.1.1"
TASK_PLACEHOLDER, NAME_PLACEHOLDER = "${task}", "${connector}"
MOST_IN_FLIGHT = 65_535
"""The most messages in flight of a session, by the protocol."""
_INSECURE, _CA = "mqtt.insecure", "mqtt.cacert"
_KEY_FILE, _KEY_CERTIFICATE, _KEY_PASSWORD = "mqtt.key.file", "mqtt.key.cert", "mqtt.key.password"
_PORTS = {"tcp": 1883, "mqtt": 1883, "ssl": 8883, "mqtts": 8883}
_WITH_TLS = ("ssl", "mqtts")

# Reason codes of version 5 (section 2.4), to which the client maps those of version 3.1.1.
FAILURE = 0x80
"""The least reason code of a failure."""
_BAD_VERSION, _BAD_CLIENT_ID, _BAD_LOGIN, _NOT_AUTHORIZED, _BANNED = 0x84, 0x85, 0x86, 0x87, 0x8A
_TAKEN_OVER = 0x8E

secret = functools.partial(ConfigKey, type=Type.PASSWORD, default=None, importance=Importance.MEDIUM)


def _check_uri(name: str, value: ConfigValue) -> None:
    for each in value if isinstance(value, list) else []:
        told = None if "@" in each else each  # it may be a password
        try:
            parts = urlsplit(each)
            known = parts.scheme in _PORTS and bool(parts.hostname) and parts.port != 0
        except ValueError:
            known = False
        if not known:
            raise ConfigError(name, told, "needs the address of a broker, such as tcp://mqtt:1883, or ssl://mqtt:8883 for TLS")
        if "@" in each:
            raise ConfigError(name, None, f"must not have a login: set {USER} and {PASSWORD}")
        if parts.path.strip("/") or parts.query or parts.fragment:
            raise ConfigError(name, told, "must end with the port")
    schemes = {urlsplit(each).scheme in _WITH_TLS for each in value} if isinstance(value, list) else set()
    if not schemes:
        raise ConfigError(name, None, "needs the address of a broker, such as tcp://mqtt:1883")
    if len(schemes) > 1:
        raise ConfigError(name, None, "must have TLS for all brokers or for none")


def connection_keys(client_id: str) -> list[ConfigKey]:
    """Return the keys of the connection, with the default of the client id."""
    return [
        ConfigKey(
            name=URI,
            type=Type.LIST,
            validator=Check(_check_uri, "addresses of brokers"),
            importance=Importance.HIGH,
            group=CONNECTION,
            doc="The broker, such as tcp://mqtt:1883; ssl:// for TLS. Further ones, separated by commas, are tried in turn when "
            "it cannot be reached: they must have the same sessions.",
        ),
        text(name=USER, default=None, group=CONNECTION, doc="The user."),
        secret(
            name=PASSWORD,
            group=CONNECTION,
            doc="The password; preferably a reference such as ${file:/run/secrets/mqtt:password}.",
        ),
        text(
            name=CLIENT_ID,
            default=client_id,
            validator=NonEmptyString(),
            group=CONNECTION,
            doc=f"The client's id, by which the broker knows its session. {NAME_PLACEHOLDER} is the connector's name, "
            f"{TASK_PLACEHOLDER} the task's number. No other client may have it.",
        ),
        text(
            name=VERSION,
            default=V5,
            validator=EnumText(V5, V3),
            importance=Importance.LOW,
            group=CONNECTION,
            doc=f"The version of the protocol: {V5} or {V3}.",
        ),
        whole(TIMEOUT, 30, 1, CONNECTION, "Seconds to wait for a connection, and for an acknowledgement."),
        whole(KEEP_ALIVE, 60, 1, CONNECTION, "Seconds without a message after which the broker is asked whether it is there."),
        flag(name=_INSECURE, default=False, group=CONNECTION, doc="Whether any certificate of the broker is taken."),
        text(name=_CA, default=None, group=CONNECTION, doc="A PEM file with the trusted certificates; by default the system's."),
        text(name=_KEY_CERTIFICATE, default=None, group=CONNECTION, doc="A PEM file with the client's certificate."),
        text(name=_KEY_FILE, default=None, group=CONNECTION, doc="A PEM file with the key of the client's certificate."),
        secret(name=_KEY_PASSWORD, group=CONNECTION, doc="The password of the key."),
        ConfigKey(name=TASK, type=Type.INT, default=0, importance=Importance.LOW, internal=True, doc="The task's number."),
    ]


TASK = "mqtt.task"


@dataclass(frozen=True, slots=True)
class Broker:
    """Brokers with the same sessions, and the login. The repr shows no password. Times are in seconds."""

    uris: Sequence[str]
    client_id: str
    is_v5: bool = True
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    timeout: float = 30.0
    keep_alive: int = 60
    tls: ssl.SSLContext | None = None


def broker_of(values: Mapping[str, ConfigValue], connector: str) -> Broker:
    """Return the brokers of parsed values. Raises ConfigError for certificates that cannot be read."""
    uris = values[URI]
    assert isinstance(uris, list)  # noqa: S101 (parsed as such)
    client_id = str(values[CLIENT_ID]).replace(NAME_PLACEHOLDER, connector).replace(TASK_PLACEHOLDER, str(values[TASK]))
    return Broker(
        uris=[str(each) for each in uris],
        client_id=client_id,
        is_v5=values[VERSION] == V5,
        user=revealed(values[USER]),
        password=revealed(values[PASSWORD]),
        timeout=float(str(values[TIMEOUT])),
        keep_alive=int(str(values[KEEP_ALIVE])),
        tls=_tls_of(values) if urlsplit(str(uris[0])).scheme in _WITH_TLS else None,
    )


def _tls_of(values: Mapping[str, ConfigValue]) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if values[_INSECURE]:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    for key in (_CA, _KEY_CERTIFICATE):
        if not (path := values[key]):
            continue
        try:
            if key == _CA:
                context.load_verify_locations(str(path))
            else:
                key_file = values[_KEY_FILE]
                password = revealed(values[_KEY_PASSWORD]) or ""
                context.load_cert_chain(str(path), None if key_file is None else str(key_file), password)
        except (OSError, ValueError) as error:  # an error of SSL is one of the system's, too
            raise ConfigError(key, str(path), f"cannot be read: {error}") from error
    return context


class Session:
    """A connection, and the session that it has at the broker. One thread uses it, and must call ``turn`` often.

    Args:
        broker: the brokers, and the login.
        clean: whether the session begins without what an earlier connection has left, and ends with this one.
        in_flight: the most messages that the broker may have sent and that are not acknowledged; by version 5 only.
        expiry: the seconds that the broker keeps the session after the connection has ended; by version 5 only.
        on_message: called by ``turn`` with each message, which ``acknowledge`` must be called for.
        on_publish: called by ``turn`` and ``publish`` with a message's number, and the reason code of its acknowledgement.
    """

    def __init__(
        self,
        broker: Broker,
        *,
        clean: bool,
        in_flight: int = MOST_IN_FLIGHT,
        expiry: int = 0,
        on_message: Callable[[MQTTMessage], None] | None = None,
        on_publish: Callable[[int, Any], None] | None = None,
    ) -> None:
        self._broker = broker
        self._clean = clean
        self._in_flight = in_flight
        self._expiry = expiry
        self._on_message = on_message
        self._on_publish = on_publish
        self._client: Client | None = None
        self._granted: dict[int, Sequence[Any]] = {}
        self._answer: Any = None  # the broker's to the connection
        self._end: str | None = None
        self._ended_by: int | None = None
        self.is_present = False
        """Whether the broker has kept the session of an earlier connection."""
        self.properties: Mapping[str, Any] = {}
        """The broker's limits, by their names in version 5, such as MaximumPacketSize."""

    def open(self) -> None:
        """Connect to the first broker that answers. Raises UnreachableError, LoginError, and MissingToolError."""
        for uri in self._broker.uris[:-1]:
            with suppress(UnreachableError):
                self._open(uri)
                return
        self._open(self._broker.uris[-1])

    def _open(self, uri: str) -> None:
        self.close()
        self._end, self._ended_by, self._answer = None, None, None
        parts = urlsplit(uri)
        self._client = client = self._new_client()
        more: dict[str, Any] = {}
        if self._broker.is_v5:
            more = {"clean_start": self._clean, "properties": self._connect_properties()}
        try:
            client.connect(parts.hostname or "", parts.port or _PORTS[parts.scheme], self._broker.keep_alive, **more)
        except (OSError, ValueError) as error:
            raise UnreachableError(f"The MQTT broker {uri} cannot be reached: {error}") from error
        self._until(lambda: self._answer is not None, f"{uri} has not answered")
        if self._answer is not None and self._answer.value >= FAILURE:
            self._refuse(uri, self._answer)

    def _new_client(self) -> Client:
        try:
            from paho.mqtt.client import Client
            from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
        except ImportError as error:
            raise MissingToolError(
                f"MQTT needs a Python package that is not installed ({error}). Run: {install_command('mqtt')} in the Python "
                "environment of the tasks."
            ) from error
        broker = self._broker
        client = Client(
            CallbackAPIVersion.VERSION2,
            broker.client_id,
            clean_session=None if broker.is_v5 else self._clean,
            protocol=MQTTProtocolVersion.MQTTv5 if broker.is_v5 else MQTTProtocolVersion.MQTTv311,
            reconnect_on_failure=False,
            manual_ack=True,
        )
        client.connect_timeout = broker.timeout
        client.max_queued_messages = client.max_inflight_messages = 0  # the sink keeps to the broker's limit
        if broker.user is not None or broker.password is not None:
            client.username_pw_set(broker.user or "", broker.password)
        if broker.tls is not None:
            client.tls_set_context(broker.tls)
        client.on_connect = self._connected
        client.on_disconnect = self._disconnected
        client.on_subscribe = self._subscribed
        client.on_message = self._received
        client.on_publish = self._published
        return client

    def _connect_properties(self) -> Any:
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        properties: Any = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        properties.ReceiveMaximum = self._in_flight
        properties.SessionExpiryInterval = self._expiry
        return properties

    # Called by the client.

    def _connected(self, _client: Any, _data: Any, flags: Any, reason: Any, properties: Any) -> None:
        self._answer, self.is_present = reason, bool(flags.session_present)
        self.properties = (
            {} if properties is None else {name: value for name, value in vars(properties).items() if name[0].isupper()}
        )

    def _disconnected(self, _client: Any, _data: Any, _flags: Any, reason: Any, _properties: Any) -> None:
        self._end, self._ended_by = str(reason), reason.value

    def _subscribed(self, _client: Any, _data: Any, number: int, reasons: Any, _properties: Any) -> None:
        self._granted[number] = reasons

    def _received(self, _client: Any, _data: Any, message: MQTTMessage) -> None:
        if self._on_message is not None:
            self._on_message(message)

    def _published(self, _client: Any, _data: Any, number: int, reason: Any, _properties: Any) -> None:
        if self._on_publish is not None:
            self._on_publish(number, reason)

    # Called by the connectors.

    def turn(self, seconds: float) -> None:
        """Send what waits, and receive a packet, for which it waits up to ``seconds``. Raises UnreachableError."""
        self._done(self._opened().loop(seconds))

    def read_on(self) -> None:
        """Receive a message that has arrived already, if there is one. Raises UnreachableError."""
        self._done(self._opened().loop_read())

    def subscribe(self, filters: Sequence[str], qos: int) -> None:
        """Subscribe, and wait for the answer. Retained messages come if the session had no such subscription, by version 5.

        Raises LoginError for a filter that the client may not have, and UnreachableError.
        """
        from paho.mqtt.subscribeoptions import SubscribeOptions

        wanted: Any = [(each, qos) for each in filters]
        if self._broker.is_v5:  # of shared ones there are none at all
            new = SubscribeOptions.RETAIN_SEND_IF_NEW_SUB
            wanted = [(each, SubscribeOptions(qos=qos, retainAsPublished=True, retainHandling=new)) for each in filters]
        code, number = self._opened().subscribe(wanted)
        if code or number is None:
            raise UnreachableError(self._why(code))
        self._until(lambda: number in self._granted, "the broker has not answered a subscription")
        for name, reason in zip(filters, self._granted.pop(number), strict=True):
            if reason.value >= FAILURE:
                raise LoginError(f"The MQTT broker refuses the subscription of {name}: {reason}", "mqtt.topics")

    def acknowledge(self, messages: Sequence[tuple[int, int]]) -> None:
        """Acknowledge messages by their numbers and qualities of service. Raises UnreachableError."""
        client = self._opened()
        for number, qos in messages:
            self._done(client.ack(number, qos))

    def publish(self, topic: str, payload: bytes, qos: int, *, retain: bool, properties: Any = None) -> int:
        """Send a message, and return its number. Raises UnreachableError."""
        sent = self._opened().publish(topic, payload, qos, retain, properties)
        self._done(sent.rc)
        return sent.mid

    def close(self) -> None:
        """Say goodbye, unless the connection is lost."""
        client, self._client = self._client, None
        if client is not None:
            with suppress(OSError, ValueError):
                client.disconnect()
            client.loop_stop()

    def _done(self, code: Any) -> None:
        """Raise UnreachableError if a call of the client has failed, or the connection has ended meanwhile."""
        if self._end is not None or code:
            raise UnreachableError(self._why(code))

    def _until(self, is_done: Callable[[], bool], what: str) -> None:
        ends = time.monotonic() + self._broker.timeout
        while not is_done():
            left = ends - time.monotonic()
            if left <= 0:
                raise UnreachableError(f"The MQTT broker {what} for {self._broker.timeout:.0f} s")
            try:
                self.turn(min(left, 1.0))
            except UnreachableError:
                if not is_done():  # an answer and the end of the connection may come together
                    raise

    def _why(self, code: Any) -> str:
        from paho.mqtt.client import error_string

        where = self._broker.uris[0]
        if self._ended_by == _TAKEN_OVER:
            return (
                f"The MQTT broker {where} has given the session to another client with the id {self._broker.client_id}. Each "
                f"needs an id of its own: set {CLIENT_ID}"
            )
        hint = f". If that repeats, another client may have the same {CLIENT_ID}" if self._ended_by == FAILURE else ""
        return f"The connection to the MQTT broker {where} is lost: {self._end or error_string(code)}{hint}"

    def _refuse(self, uri: str, reason: Any) -> None:
        advice = {
            _BAD_VERSION: (VERSION, f"Set {VERSION}={V3 if self._broker.is_v5 else V5}."),
            _BAD_CLIENT_ID: (CLIENT_ID, f"Set another {CLIENT_ID}."),
            _BAD_LOGIN: (PASSWORD, f"Check {USER} and {PASSWORD}."),
            _NOT_AUTHORIZED: (PASSWORD, f"Check {USER}, {PASSWORD}, and what the user may do."),
            _BANNED: (CLIENT_ID, f"Set another {CLIENT_ID}, or ask its operator."),
        }.get(reason.value)
        if advice is None:
            raise UnreachableError(f"The MQTT broker {uri} refuses the connection for now: {reason}")
        key, what = advice
        raise LoginError(f"The MQTT broker {uri} refuses the connection: {reason}. {what}", key)

    def _opened(self) -> Client:
        if self._client is None:
            raise UnreachableError("The connection to the MQTT broker is lost")
        return self._client


class MqttConnector(CheckedConnector):
    """Base of the MQTT connectors."""

    address_key = URI

    @classmethod
    def connection_conflicts(cls, values: Mapping[str, ConfigValue]) -> Mapping[str, str]:
        uris = values[URI]
        has_tls = isinstance(uris, list) and urlsplit(str(uris[0])).scheme in _WITH_TLS
        given = [key for key in (_CA, _KEY_CERTIFICATE, _KEY_FILE, _INSECURE) if values[key]]
        if given and not has_tls:
            return {given[0]: f"has an effect only with ssl:// in {URI}"}
        if values[_KEY_FILE] and not values[_KEY_CERTIFICATE]:
            return {_KEY_CERTIFICATE: f"is needed with {_KEY_FILE}"}
        return {}

    @classmethod
    def try_system(
        cls, values: Mapping[str, ConfigValue], config: Mapping[str, str], found: Mapping[str, ValidatedValue]
    ) -> None:
        client_id = f"{values[CLIENT_ID]}-check"  # with its own id, a running task would lose its connection
        with closing(Session(broker_of({**values, CLIENT_ID: client_id}, config.get("name", "")), clean=True)) as session:
            session.open()
