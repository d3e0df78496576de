"""The settings of a mirror's Kafka clients, taken from its config as MirrorMaker 2 takes them. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway.connectors.mirror.oauth_keys import OAUTH
from sluiceway.connectors.mirror.sasl_keys import SASL
from sluiceway.connectors.mirror.ssl_keys import SSL
from sluiceway.errors import ConfigError

SOURCE = "source"
TARGET = "target"

ADMIN = "admin"
CONSUMER = "consumer"
PRODUCER = "producer"

_BOOTSTRAP = "bootstrap.servers"
_ALL_CLIENTS = {_BOOTSTRAP, "security.protocol", *(key.name for keys in (SSL, SASL, OAUTH) for key in keys)}


def client_properties(config: Mapping[str, str], cluster: str, client: str) -> dict[str, str]:
    """Return the properties of a client (``admin``, ``consumer``, ``producer``) of one of the clusters, ``source`` or ``target``.

    Where it is and how to log in stand behind ``source.cluster.``; whatever else behind ``consumer.`` for both clusters, or
    behind ``source.consumer.``, which wins. Raises ConfigError if the config does not say where the cluster is.
    """
    shared = _behind(f"{cluster}.cluster.", config)
    properties = {
        **{name: value for name, value in shared.items() if name in _ALL_CLIENTS},
        **_behind(f"{client}.", config),
        **_behind(f"{cluster}.{client}.", config),
    }
    if not properties.get(_BOOTSTRAP):
        raise ConfigError(
            f'Missing required configuration "{cluster}.cluster.{_BOOTSTRAP}", which says where the {cluster} cluster is: '
            "its brokers as host:port, separated by commas."
        )
    return properties


def reads_committed(config: Mapping[str, str]) -> bool:
    """Whether the source's consumer leaves out what is in aborted and open transactions."""
    found = {**_behind(f"{CONSUMER}.", config), **_behind(f"{SOURCE}.{CONSUMER}.", config)}
    return found.get("isolation.level") == "read_committed"


def _behind(prefix: str, config: Mapping[str, str]) -> dict[str, str]:
    """Return the properties behind a prefix, but for Connect's own overrides (``producer.override.``)."""
    found = {key[len(prefix) :]: value for key, value in config.items() if key.startswith(prefix)}
    return {name: value for name, value in found.items() if not name.startswith("override.")}
