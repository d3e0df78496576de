"""Maps the properties of Kafka's Java clients to librdkafka's: renamed, converted, ignored, or refused with a reason."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from sluiceway.config.parsing import parse_list
from sluiceway.errors import ConfigError
from sluiceway.kafka.sasl_properties import sasl_settings
from sluiceway.kafka.ssl_properties import ssl_settings

log = logging.getLogger(__name__)

PROTOCOL = "security.protocol"

RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.partition.fetch.bytes": "fetch.message.max.bytes",
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "request.timeout.ms": "socket.timeout.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
}
"""Keys with the same meaning under another name."""

IGNORED = frozenset(
    {
        "auto.include.jmx.reporter",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.zstd.level",
        "config.providers",
        "default.api.timeout.ms",
        "enable.metrics.push",
        "exclude.internal.topics",
        "group.instance.id.prefix",
        "interceptor.classes",
        "internal.throw.on.fetch.stable.offset.unsupported",
        "key.deserializer",
        "key.serializer",
        "max.block.ms",
        "max.poll.records",
        "metadata.max.idle.ms",
        "metadata.recovery.rebootstrap.trigger.ms",
        "metadata.recovery.strategy",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
        "partitioner.class",
        "partitioner.ignore.keys",
        "security.providers",
        "share.acknowledgement.mode",
        "share.acquire.mode",
        "socket.connection.setup.timeout.max.ms",
        "transaction.two.phase.commit.enable",
        "value.deserializer",
        "value.serializer",
    }
)
"""Keys that tune the Java clients only; ignoring them changes nothing for the user."""

REFUSED = {
    "bootstrap.controllers": "Only brokers can be asked here; name them in bootstrap.servers.",
    "sasl.client.callback.handler.class": "Java code cannot run here; sasl.jaas.config can hold what is needed to log in.",
    "sasl.login.class": "Java code cannot run here; sasl.jaas.config can hold what is needed to log in.",
    "ssl.engine.factory.class": "Java code cannot run here; name certificates in ssl.truststore.* and ssl.keystore.*.",
}
"""Keys that a client cannot ignore without breaking what the user asked for, such as the login."""

_RESETS = frozenset({"earliest", "latest", "none"})
_OF_OTHERS = frozenset(
    {
        "config.providers",
        "group.instance.id",
        "group.protocol",
        "group.remote.assignor",
        "heartbeat.interval.ms",
        "interceptor.classes",
        "key.deserializer",
        "metric.reporters",
        "partition.assignment.strategy",
        "session.timeout.ms",
        "value.deserializer",
    }
)
"""Keys that mean nothing to a Java consumer which is no member of its group, or that Sluiceway ignores."""

_ASSIGNORS = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "CooperativeStickyAssignor": "cooperative-sticky",
}
_OWN_SASL_KEYS = frozenset(
    {
        "sasl.username",
        "sasl.password",
        "sasl.mechanisms",
        "sasl.kerberos.principal",
        "sasl.kerberos.keytab",
        "sasl.oauthbearer.config",
        "sasl.oauthbearer.method",
        "sasl.oauthbearer.client.id",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.extensions",
        "sasl.oauthbearer.grant.type",
    }
)
_OWN_SSL_KEYS = frozenset(
    {
        "ssl.ca.location",
        "ssl.ca.pem",
        "ssl.ca.certificate.stores",
        "ssl.certificate.location",
        "ssl.certificate.pem",
        "ssl.cipher.suites",
        "ssl.crl.location",
        "ssl.curves.list",
        "ssl.engine.id",
        "ssl.engine.location",
        "ssl.key.location",
        "ssl.key.pem",
        "ssl.providers",
        "ssl.sigalgs.list",
    }
)


def to_librdkafka(properties: Mapping[str, str]) -> dict[str, str]:
    """Return Java client properties as librdkafka's. Keys that are librdkafka's already are kept.

    ``properties`` must be complete, because some only have a meaning together. Reads the key stores they name. Raises
    ConfigError for properties that require the Java client; the error contains no secret.
    """
    mapped: dict[str, str] = {}
    for key, value in properties.items():
        if key == PROTOCOL or key.startswith(("ssl.", "sasl.")):
            continue  # handled by _security
        if key in IGNORED:
            log.debug("Ignoring %s, which only the Java client supports", key)
        elif key in REFUSED:
            _refuse(properties, key)
        elif key in _CONVERTED:
            mapped = {**_CONVERTED[key](value), **mapped}  # librdkafka's own key wins if both are given
        else:
            mapped[RENAMED.get(key, key)] = value
    return {**mapped, **_security(properties)}


def to_java(properties: Mapping[str, str], reset: str) -> dict[str, str] | None:
    """Return properties of a consumer, which may be librdkafka's, for a Java consumer that joins no group.

    ``reset`` is the default of ``auto.offset.reset``. None if some of them that matter only exist in librdkafka.
    """
    names = {own: java for java, own in RENAMED.items()}
    java = {names.get(key, key): value for key, value in properties.items() if key not in _OF_OTHERS}
    java.setdefault("auto.offset.reset", reset)
    own = (_OWN_SASL_KEYS | _OWN_SSL_KEYS) - {"ssl.cipher.suites"}
    return None if java["auto.offset.reset"] not in _RESETS or not own.isdisjoint(java) else java


def _security(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of the security protocol. Like Java, ignore those it does not use: they may be the REST API's."""
    protocol = properties.get(PROTOCOL, "").strip().upper()
    settings = {PROTOCOL: protocol} if protocol else {}
    if protocol.endswith("SSL"):
        _refuse(properties, "ssl.")
        settings |= {**_own(properties, _OWN_SSL_KEYS), **ssl_settings(properties)}
    if protocol.startswith("SASL_"):
        _refuse(properties, "sasl.")
        settings |= {**_own(properties, _OWN_SASL_KEYS), **sasl_settings(properties)}
    return settings


def _own(properties: Mapping[str, str], keys: frozenset[str]) -> dict[str, str]:
    return {key: value for key, value in properties.items() if key in keys}


def _refuse(properties: Mapping[str, str], prefix: str) -> None:
    for key, reason in REFUSED.items():
        if key.startswith(prefix) and properties.get(key):
            raise ConfigError(key, properties[key], reason)


def _buffer_memory(value: str) -> dict[str, str]:
    return {"queue.buffering.max.kbytes": str(max(1, int(value) // 1024))} if value.strip().isdigit() else {}


def _offset_reset(value: str) -> dict[str, str]:
    name = value.strip().lower()
    if name.startswith("by_duration"):
        raise ConfigError("auto.offset.reset", value, "Here it is one of earliest, latest and none.")
    return {"auto.offset.reset": "error" if name == "none" else name}


def _metadata_age(value: str) -> dict[str, str]:
    """Set the refresh interval too: librdkafka's ``metadata.max.age.ms`` only expires old topics and finds no new partitions."""
    if not value.strip().isdigit():
        return {"metadata.max.age.ms": value}  # librdkafka refuses it
    age = max(1, int(value))  # 0 would disable the refresh
    return {
        "metadata.max.age.ms": str(min(age, 86_400_000)),
        "topic.metadata.refresh.interval.ms": str(min(age, 3_600_000)),
    }


def _assignment(value: str) -> dict[str, str]:
    known = [_ASSIGNORS.get(name.rpartition(".")[2], name) for name in parse_list(value)]
    usable = [name for name in known if name in ("range", "roundrobin", "cooperative-sticky")]
    # librdkafka does not mix eager and cooperative rebalancing. Java, given both, starts with the eager one too.
    eager = [name for name in usable if name != "cooperative-sticky"]
    return {"partition.assignment.strategy": ",".join(eager or usable)} if usable else {}


_CONVERTED: dict[str, Callable[[str], dict[str, str]]] = {
    "auto.offset.reset": _offset_reset,
    "buffer.memory": _buffer_memory,
    "metadata.max.age.ms": _metadata_age,
    "partition.assignment.strategy": _assignment,
}
