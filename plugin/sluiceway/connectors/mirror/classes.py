"""The classes that a mirror's config may name: ours that stand in for Kafka's, Kafka's by name alone, and any in Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from sluiceway.config.definition import PluginClass
from sluiceway.connectors.mirror.filters import (
    ConfigPropertyFilter,
    DefaultConfigPropertyFilter,
    DefaultTopicFilter,
    TopicFilter,
)
from sluiceway.connectors.mirror.policy import DefaultReplicationPolicy, IdentityReplicationPolicy, ReplicationPolicy
from sluiceway.discovery import load, plugin_named
from sluiceway.errors import ConfigError, NotFoundError

T = TypeVar("T", ReplicationPolicy, TopicFilter, ConfigPropertyFilter)

_OURS: dict[str, type] = {
    cls.java_class: cls
    for cls in (DefaultReplicationPolicy, IdentityReplicationPolicy, DefaultTopicFilter, DefaultConfigPropertyFilter)
}

_COMMON = "org.apache.kafka.common.security."
_OAUTH = f"{_COMMON}oauthbearer."
# Java classes that configs of Kafka's clients name. Known, so that such a config is found valid; nothing here runs them.
_KAFKAS = {
    "org.apache.kafka.clients.admin.ForwardingAdmin",
    f"{_COMMON}authenticator.DefaultLogin",
    f"{_COMMON}authenticator.AbstractLogin$DefaultLoginCallbackHandler",
    f"{_COMMON}authenticator.SaslClientCallbackHandler",
    f"{_COMMON}kerberos.KerberosClientCallbackHandler",
    f"{_COMMON}kerberos.KerberosLogin",
    f"{_COMMON}ssl.DefaultSslEngineFactory",
    f"{_OAUTH}BrokerJwtValidator",
    f"{_OAUTH}ClientCredentialsJwtRetriever",
    f"{_OAUTH}ClientJwtValidator",
    f"{_OAUTH}DefaultJwtRetriever",
    f"{_OAUTH}DefaultJwtValidator",
    f"{_OAUTH}FileJwtRetriever",
    f"{_OAUTH}JwtBearerJwtRetriever",
    f"{_OAUTH}OAuthBearerLoginCallbackHandler",
    f"{_OAUTH}OAuthBearerValidatorCallbackHandler",
    f"{_OAUTH}internals.OAuthBearerRefreshingLogin",
    f"{_OAUTH}internals.OAuthBearerSaslClientCallbackHandler",
}


_GROUPS = (
    "sluiceway.connectors",
    "sluiceway.converters",
    "sluiceway.header_converters",
    "sluiceway.predicates",
    "sluiceway.transforms",
)


def known_class(name: str) -> PluginClass:
    """Return what a config names: a class of Kafka's that is known here, a plugin, or a Python class by its dotted path.

    Raises ConfigError for any other.
    """
    if name in _OURS:
        return PluginClass(name, _OURS[name])
    if name in _KAFKAS:
        return PluginClass(name, None)
    found = next(filter(None, (plugin_named(group, name) for group in _GROUPS)), None)
    if found is None:
        try:
            found = load(name)
        except NotFoundError:
            found = None
    if not isinstance(found, type):
        raise ConfigError(f"Class {name} could not be found.")
    return PluginClass(getattr(found, "java_class", None) or name, found)


def configured(base: type[T], key: str, value: object, config: Mapping[str, str]) -> T:
    """Return a configured object of the class that a config's key names; raises ConfigError if it is none of this kind."""
    cls = value.cls if isinstance(value, PluginClass) else None
    if cls is None or not issubclass(cls, base):
        name = value.name if isinstance(value, PluginClass) else value
        raise ConfigError(key, name, f"This is no {base.__name__} that runs here. Name one of Kafka's, or a Python class.")
    made: T = cls()
    made.configure(config)
    return made
