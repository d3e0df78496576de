"""Provides environment variables: ``${env:VARIABLE}``."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping

from sluiceway.config.providers.provider import ConfigData, ConfigProvider
from sluiceway.errors import ConfigError
from sluiceway.java.regex import RegexError, compile_java

ALLOWLIST = "allowlist.pattern"


class EnvVarConfigProvider(ConfigProvider):
    """Provides the environment variables of the process that uses the config: the driver or an executor."""

    of_machine = True
    java_class = "org.apache.kafka.common.config.provider.EnvVarConfigProvider"

    def configure(self, params: Mapping[str, str]) -> None:
        pattern = params.get(ALLOWLIST, ".*")
        try:
            allowed = compile_java(pattern)
        except RegexError as error:
            raise ConfigError(ALLOWLIST, pattern, f"is not a regular expression: {error}") from error
        self._variables = {name: value for name, value in os.environ.items() if allowed.matches(name)}

    def check(self, path: str, key: str) -> None:
        if path:
            raise ConfigError(f"Path is not supported for EnvVarConfigProvider, invalid value '{path}'; write ${{env:NAME}}")

    def get(self, path: str, keys: Collection[str]) -> ConfigData:
        self.check(path, "")
        return ConfigData({key: self._variables[key] for key in keys if key in self._variables})
