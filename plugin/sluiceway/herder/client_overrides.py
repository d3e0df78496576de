"""Validates client overrides: ``producer.override.*``, ``consumer.override.*``, ``admin.override.*``. No I/O."""

from __future__ import annotations

from dataclasses import replace

from sluiceway.config.client_keys import CLIENT_KEYS
from sluiceway.config.connector import DLQ_TOPIC, NAME
from sluiceway.config.consumer_group import GROUP, sink_group
from sluiceway.config.definition import ConfigKey, ConfigValue, ValidatedValue, parse_value
from sluiceway.config.source_keys import TOPIC_CREATION_PREFIX
from sluiceway.config.worker import WorkerConfig
from sluiceway.herder.config_infos import ConfigInfo, ConfigKeyInfo, ConfigValueInfo
from sluiceway.herder.enrichment import Config
from sluiceway.herder.override_policy import OverridePolicy


def override_infos(config: Config, policy: OverridePolicy, *, sink: bool) -> list[ConfigInfo]:
    """Return the overrides of the clients that the connector uses, with the errors of the worker's override policy.

    Raises ConfigError for a value that does not have its type.
    """
    return [info for client in _clients(config, sink=sink) for info in _infos(client, config, policy)]


def check_group(config: Config, found: dict[str, ValidatedValue], worker: WorkerConfig) -> None:
    """Add an error if a sink's consumers would join the group of the workers."""
    name = config.get(NAME)
    group = sink_group(worker, str(name), config)
    if group != worker.group_id:
        return
    if config.get(GROUP):
        value = found.setdefault(GROUP, ValidatedValue(GROUP, group))
        value.errors.append(f"Consumer group {group} conflicts with Connect worker group {group}")
    else:
        found[NAME].errors.append(f"Consumer group for sink connector named {name} conflicts with Connect worker group {group}")


def _clients(config: Config, *, sink: bool) -> list[str]:
    has_dead_letter_queue = bool((config.get(DLQ_TOPIC) or "").strip())
    creates_topics = any(key.startswith(TOPIC_CREATION_PREFIX) for key in config)
    uses = {
        "producer": has_dead_letter_queue or not sink,
        "consumer": sink,
        "admin": has_dead_letter_queue if sink else creates_topics,
    }
    return [client for client, used in uses.items() if used]


def _infos(client: str, config: Config, policy: OverridePolicy) -> list[ConfigInfo]:
    prefix = f"{client}.override."
    found = [_info(client, prefix, key[len(prefix) :], value) for key, value in config.items() if key.startswith(prefix)]
    return [_with_refusal(info, policy.refusal(info.value.name[len(prefix) :])) for info in found if info.value is not None]


def _with_refusal(info: ConfigInfo, refusal: str | None) -> ConfigInfo:
    if refusal is None or info.value is None:
        return info
    return replace(info, value=replace(info.value, errors=(*info.value.errors, refusal)))


def _info(client: str, prefix: str, name: str, raw: str | None) -> ConfigInfo:
    type_ = CLIENT_KEYS[client].get(name)
    if type_ is None:
        return ConfigInfo(None, ConfigValueInfo(prefix + name, raw))
    value: ConfigValue = parse_value(name, raw, type_)
    key = ConfigKey(name=name, type=type_, default=None)
    return ConfigInfo(ConfigKeyInfo.of(key, prefix), ConfigValueInfo.of(ValidatedValue(name, value), type_, prefix))
