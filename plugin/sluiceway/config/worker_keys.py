"""Which keys a worker's file may hold, so that a mistyped one is noticed. Pure, but for the warning."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterable, Mapping

from sluiceway.config.client_keys import CLIENT_KEYS

log = logging.getLogger(__name__)

# Kafka's DistributedConfig, StandaloneConfig and RestServerConfig. Many say something about a worker group or the JVM that has
# no counterpart here; a file that sets them is not wrong.
_WORKER = """
    access.control.allow.methods access.control.allow.origin admin.listeners bootstrap.servers client.dns.lookup client.id
    config.providers config.storage.replication.factor config.storage.topic connect.protocol
    connector.client.config.override.allowlist connector.client.config.override.policy connections.max.idle.ms
    exactly.once.source.support group.id header.converter heartbeat.interval.ms inter.worker.key.generation.algorithm
    inter.worker.key.size inter.worker.key.ttl.ms inter.worker.signature.algorithm inter.worker.verification.algorithms
    key.converter listeners offset.flush.interval.ms offset.flush.timeout.ms offset.storage.file.filename
    offset.storage.partitions offset.storage.replication.factor offset.storage.topic plugin.discovery plugin.path
    rebalance.timeout.ms response.http.headers.config rest.advertised.host.name rest.advertised.listener rest.advertised.port
    rest.extension.classes rest.host.name rest.port scheduled.rebalance.max.delay.ms session.timeout.ms ssl.client.auth
    status.storage.partitions status.storage.replication.factor status.storage.topic task.shutdown.graceful.timeout.ms
    topic.creation.enable topic.tracking.allow.reset topic.tracking.enable value.converter worker.sync.timeout.ms
    worker.unsync.backoff.ms
"""
# What stands behind these is up to a converter, a provider, a topic, or us.
_OPEN = (
    "key.converter.",
    "value.converter.",
    "header.converter.",
    "config.providers.",
    "metrics.context.",
    "listeners.https.",
    "admin.listeners.https.",
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
_ALIKE = 0.75
_MISTYPED = 0.92  # behind an open prefix anything goes, but for what is all but a known key

_PREFIXED = (f"{client}.{key}" for client, keys in CLIENT_KEYS.items() for key in keys)
_KNOWN = frozenset(_WORKER.split()).union(*CLIENT_KEYS.values(), _PREFIXED)
_told: set[str] = set()


def unknown_keys(keys: Iterable[str]) -> dict[str, str | None]:
    """Return the keys that nobody will read, each with the known key that was probably meant, or None."""
    found: dict[str, str | None] = {}
    for key in keys:
        if key in _KNOWN:
            continue
        is_open = key.startswith(_OPEN)
        alike = difflib.get_close_matches(key, _KNOWN, n=1, cutoff=_MISTYPED if is_open else _ALIKE)
        if alike or not is_open:
            found[key] = alike[0] if alike else None
    return found


def unknown_key_text(key: str, meant: str | None) -> str:
    """Return the warning about an unknown key; it does not show the value."""
    return f"The worker's key {key} is not known and has no effect" + (f"; did you mean {meant}?" if meant else "")


def warn_of_unknown(properties: Mapping[str, str]) -> None:
    """Log a warning for each unknown key, once in a process."""
    new = [key for key in properties if key not in _told]
    for key, meant in unknown_keys(new).items():
        log.warning("%s", unknown_key_text(key, meant))
    _told.update(new)
