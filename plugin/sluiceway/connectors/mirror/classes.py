"""Resolves the classes that a MirrorSourceConnector's config names: policies and filters, Kafka's client classes, plugins."""

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

_IMPLEMENTED: dict[str, type] = {
    cls.java_class: cls
    for cls in (DefaultReplicationPolicy, IdentityReplicationPolicy, DefaultTopicFilter, DefaultConfigPropertyFilter)
}

_COMMON = "org.apache.kafka.common.security."
_OAUTH = f"{_COMMON}oauthbearer."
# Classes that are valid in configs of Java clients. Validation accepts them; nothing here runs them.
_JAVA_CLIENT_CLASSES = {
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
    """Return the class that a config names: a known Java class, a plugin, or a Python class by its dotted path.

    Raises ConfigError if there is no such class.
    """
    if name in _IMPLEMENTED:
        return PluginClass(name, _IMPLEMENTED[name])
    if name in _JAVA_CLIENT_CLASSES:
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
    """Return a configured object of the class in ``value``, the value of a config key.

    Raises ConfigError if the class is not a subclass of ``base`` that can run here.
    """
    cls = value.cls if isinstance(value, PluginClass) else None
    if cls is None or not issubclass(cls, base):
        name = value.name if isinstance(value, PluginClass) else value
        raise ConfigError(key, name, f"not a {base.__name__} that can run in Python. Use the default, or a Python subclass.")
    made: T = cls()
    made.configure(config)
    return made
