"""Reports keys of a connector's config that neither the connector, nor Connect, nor Sluiceway defines."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from sluiceway.api import Connector
from sluiceway.config.connector import OWN
from sluiceway.config.definition import ConfigDef, ConfigKey
from sluiceway.config.masking import shown
from sluiceway.config.plugin_keys import IN_JAVA
from sluiceway.config.unknown_keys import FAIL, IGNORE, WARN, policy_of, unknown_key_text, unknown_keys
from sluiceway.config.worker import WorkerConfig
from sluiceway.discovery import language_of
from sluiceway.errors import ConfigError
from sluiceway.herder.config_infos import ConfigInfo, ConfigValueInfo
from sluiceway.herder.enrichment import Config, framework_def

log = logging.getLogger(__name__)


def refused_keys(config: Config, definition: ConfigDef, worker: WorkerConfig) -> list[ConfigInfo]:
    """Return the unknown keys as errors of a validation, if ``errors.unknown.keys=fail``.

    Otherwise they are left out, as in Kafka Connect.
    """
    if policy_of(config, worker.raw) != FAIL:
        return []
    return [
        ConfigInfo(None, ConfigValueInfo(key, shown(key, config[key] or ""), errors=(unknown_key_text(key, similar),)))
        for key, similar in _unknown(config, definition, FAIL).items()
    ]


def report_unknown_keys(name: str, config: Mapping[str, str], connector: type[Connector], worker: WorkerConfig) -> None:
    """Log the unknown keys of a connector that starts. Raises ConfigError if its config or its worker refuses them."""
    policy = policy_of(config, worker.raw)
    in_java = language_of(connector) == IN_JAVA and policy == WARN
    found = _unknown(config, (*framework_def(connector, config, worker), *connector.config_def()), policy, in_java)
    texts = [unknown_key_text(key, similar) for key, similar in found.items()]
    if texts and policy == FAIL:
        raise ConfigError(f"Connector {name}: {' '.join(texts)}")
    for text in texts:
        log.warning("[%s|worker] %s", name, text)


def _unknown(config: Config, definition: Iterable[ConfigKey], policy: str, reads_others: bool = False) -> dict[str, str | None]:
    defined = {key.name for key in (*definition, *OWN)}
    return {} if policy == IGNORE else unknown_keys(config, defined, reads_others=reads_others)
