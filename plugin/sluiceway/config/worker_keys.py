"""Finds unknown keys in a worker's properties, so that typing errors are noticed. Logs warnings; no other I/O."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from sluiceway.config.client_keys import CLIENT_KEYS
from sluiceway.config.unknown_keys import POLICY, unknown_among

log = logging.getLogger(__name__)

# The keys of Kafka's DistributedConfig, StandaloneConfig and RestServerConfig. Many of them configure a worker group or the
# JVM and have no effect here, but a file may set them.
_WORKER = """
    access.control.allow.methods access.control.allow.origin admin.listeners bootstrap.servers client.dns.lookup client.id
    config.providers config.storage.replication.factor config.storage.topic connect.protocol
    connector.client.config.override.allowlist connector.client.config.override.policy connections.max.idle.ms
    exactly.once.source.support group.id header.converter heartbeat.interval.ms inter.worker.key.generation.algorithm
    inter.worker.key.size inter.worker.key.ttl.ms inter.worker.signature.algorithm inter.worker.verification.algorithms
    key.converter listeners offset.flush.interval.ms offset.flush.timeout.ms offset.storage.file.filename
    offset.storage.partitions offset.storage.replication.factor offset.storage.topic plugin.discovery plugin.java
    plugin.path
    rebalance.timeout.ms response.http.headers.config rest.advertised.host.name rest.advertised.listener rest.advertised.port
    rest.extension.classes rest.host.name rest.port scheduled.rebalance.max.delay.ms session.timeout.ms ssl.client.auth
    status.storage.partitions status.storage.replication.factor status.storage.topic task.shutdown.graceful.timeout.ms
    topic.creation.enable topic.tracking.allow.reset topic.tracking.enable value.converter worker.sync.timeout.ms
    worker.unsync.backoff.ms
"""
_OWN = """
    sluiceway.application.default sluiceway.application.max.tasks sluiceway.heartbeat.interval.ms sluiceway.heartbeat.timeout.ms
    sluiceway.history.topic sluiceway.metrics.listener sluiceway.migrate.with sluiceway.rest.basic.auth.file
    sluiceway.rest.bearer.token.file
    sluiceway.slots.timeout.ms sluiceway.task.restart.backoff.initial.ms sluiceway.task.restart.backoff.max.ms
    sluiceway.task.restart.max.restarts sluiceway.task.restart.policy sluiceway.task.restart.reset.after.ms
    sluiceway.validate.references
"""
_SERVERS = ("listeners.https.", "admin.listeners.https.")
# Keys with these prefixes are read by converters, config providers, topics, clients or Sluiceway.
_OPEN = (
    "key.converter.",
    "value.converter.",
    "header.converter.",
    "config.providers.",
    "metrics.context.",
    *_SERVERS,
    "config.storage.",
    "offset.storage.",
    "status.storage.",
    "producer.",
    "consumer.",
    "admin.",
    "airflow.",
    "spark.",
    "sluiceway.",
)

_PREFIXED = (f"{client}.{key}" for client, keys in CLIENT_KEYS.items() for key in keys)
_SSL = {"ssl.client.auth", *(key for keys in CLIENT_KEYS.values() for key in keys if key.startswith("ssl."))}
_TLS = (f"{server}{key}" for server in _SERVERS for key in _SSL)
_KNOWN = frozenset((*_WORKER.split(), *_OWN.split(), POLICY)).union(*CLIENT_KEYS.values(), _PREFIXED, _TLS)
_checked: set[str] = set()


def unknown_keys(keys: Iterable[str]) -> dict[str, str | None]:
    """Return the unknown keys, each with the most similar known key or None."""
    return unknown_among(keys, _KNOWN, _OPEN)


def unknown_key_text(key: str, similar: str | None) -> str:
    """Return the warning for an unknown key. It does not contain the value."""
    return f"Unknown key {key} in the worker's properties has no effect." + (f" Did you mean {similar}?" if similar else "")


def warn_of_unknown(properties: Mapping[str, str]) -> None:
    """Log a warning for each unknown key, once per process."""
    new = [key for key in properties if key not in _checked]
    for key, similar in unknown_keys(new).items():
        log.warning("%s", unknown_key_text(key, similar))
    _checked.update(new)
