"""A connector's settings for its Kafka clients: ``producer.override.*``, ``consumer.override.*``, ``admin.override.*``. Pure."""

from __future__ import annotations

from sluiceway.config.client_keys import CLIENT_KEYS
from sluiceway.config.connector import DLQ_TOPIC
from sluiceway.config.definition import ConfigKey, ConfigValue, ValidatedValue, parse_value
from sluiceway.herder.config_infos import ConfigInfo, ConfigKeyInfo, ConfigValueInfo
from sluiceway.herder.enrichment import Config

_TOPIC_CREATION = "topic.creation."


def override_infos(config: Config, *, sink: bool) -> list[ConfigInfo]:
    """Return the overrides of the clients that the connector uses; raises ConfigError for a value that is not of its type."""
    return [info for client in _clients(config, sink=sink) for info in _infos(client, config)]


def _clients(config: Config, *, sink: bool) -> list[str]:
    dead_letters = bool((config.get(DLQ_TOPIC) or "").strip())
    creates_topics = any(key.startswith(_TOPIC_CREATION) for key in config)
    uses = {
        "producer": dead_letters or not sink,
        "consumer": sink,
        "admin": dead_letters if sink else creates_topics,
    }
    return [client for client, used in uses.items() if used]


def _infos(client: str, config: Config) -> list[ConfigInfo]:
    prefix = f"{client}.override."
    return [_info(client, prefix, key[len(prefix) :], value) for key, value in config.items() if key.startswith(prefix)]


def _info(client: str, prefix: str, name: str, raw: str | None) -> ConfigInfo:
    type_ = CLIENT_KEYS[client].get(name)
    if type_ is None:
        return ConfigInfo(None, ConfigValueInfo(prefix + name, raw))
    value: ConfigValue = parse_value(name, raw, type_)
    key = ConfigKey(name=name, type=type_, default=None)
    return ConfigInfo(ConfigKeyInfo.of(key, prefix), ConfigValueInfo.of(ValidatedValue(name, value), type_, prefix))
