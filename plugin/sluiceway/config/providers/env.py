"""Provides environment variables: ``${env:VARIABLE}``."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Mapping

from sluiceway.config.environment import for_configs
from sluiceway.config.providers.provider import ConfigData, ConfigProvider
from sluiceway.errors import ConfigError
from sluiceway.java.regex import RegexError, compile_java

log = logging.getLogger(__name__)

ALLOWLIST = "allowlist.pattern"
CONNECTORS = "CONNECTOR_.*"
"""The default of ``allowlist.pattern`` for connectors' configs. Kafka's is ``.*``, which gives them every variable."""
ANY = ".*"


class EnvVarConfigProvider(ConfigProvider):
    """Provides the environment variables of the process that uses the config: the driver or an executor.

    Those whose names match ``allowlist.pattern``; without it, those whose names begin with ``CONNECTOR_``. Never Airflow's own,
    such as ``AIRFLOW__API_AUTH__JWT_SECRET``.
    """

    of_machine = True
    java_class = "org.apache.kafka.common.config.provider.EnvVarConfigProvider"

    def configure(self, params: Mapping[str, str]) -> None:
        self._pattern = params.get(ALLOWLIST, CONNECTORS)
        try:
            allowed = compile_java(self._pattern)
        except RegexError as error:
            raise ConfigError(ALLOWLIST, self._pattern, f"is not a regular expression: {error}") from error
        self._allows = allowed.matches

    def check(self, path: str, key: str) -> None:
        self._check_path(path)
        if why := self._refusal(key):
            raise ConfigError(why)

    def get(self, path: str, keys: Collection[str]) -> ConfigData:
        self._check_path(path)
        refusals = {key: self._refusal(key) for key in keys}
        for key, why in refusals.items():
            if why:
                log.error("The environment variable %s is not read: %s", key, why)
        return ConfigData({key: os.environ[key] for key, why in refusals.items() if not why and key in os.environ})

    def _check_path(self, path: str) -> None:
        if path:
            raise ConfigError(f"Path is not supported for EnvVarConfigProvider, invalid value '{path}'; write ${{env:NAME}}")

    def _refusal(self, name: str) -> str:
        """Return why a variable must not be read, empty if it may."""
        if not for_configs({name: ""}):
            return "configs cannot refer to Airflow's own variables"
        return "" if self._allows(name) else f"the worker's {ALLOWLIST} for this provider is {self._pattern}"
