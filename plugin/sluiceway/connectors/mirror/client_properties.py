"""Derives the properties of MirrorSourceConnector's Kafka clients from its config, as MirrorMaker 2 does. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway.connectors.mirror.keys import CLIENT_SECURITY
from sluiceway.errors import ConfigError

SOURCE = "source"
TARGET = "target"

ADMIN = "admin"
CONSUMER = "consumer"
PRODUCER = "producer"

_BOOTSTRAP = "bootstrap.servers"
_ALL_CLIENTS = {_BOOTSTRAP, "security.protocol", *(key.name for key in CLIENT_SECURITY)}


def client_properties(config: Mapping[str, str], cluster: str, client: str) -> dict[str, str]:
    """Return the properties of a client (``admin``, ``consumer``, ``producer``) of a cluster (``source``, ``target``).

    Bootstrap servers and security settings have the prefix ``source.cluster.``. Other properties have the prefix ``consumer.``
    for both clusters or ``source.consumer.``, which takes precedence. Raises ConfigError if there are no bootstrap servers.
    """
    shared = _with_prefix(f"{cluster}.cluster.", config)
    properties = {
        **{name: value for name, value in shared.items() if name in _ALL_CLIENTS},
        **_with_prefix(f"{client}.", config),
        **_with_prefix(f"{cluster}.{client}.", config),
    }
    if not properties.get(_BOOTSTRAP):
        raise ConfigError(
            f'Missing required configuration "{cluster}.cluster.{_BOOTSTRAP}". '
            f"Set it to brokers of the {cluster} cluster as host:port, separated by commas."
        )
    return properties


def reads_committed(config: Mapping[str, str]) -> bool:
    """Return True if the source's consumer has ``isolation.level=read_committed``."""
    found = {**_with_prefix(f"{CONSUMER}.", config), **_with_prefix(f"{SOURCE}.{CONSUMER}.", config)}
    return found.get("isolation.level") == "read_committed"


def _with_prefix(prefix: str, config: Mapping[str, str]) -> dict[str, str]:
    """Return the properties with a prefix, without Connect's own overrides (``producer.override.``)."""
    found = {key[len(prefix) :]: value for key, value in config.items() if key.startswith(prefix)}
    return {name: value for name, value in found.items() if not name.startswith("override.")}
