"""Provides values from .properties files: ``${file:/path/to/secrets.properties:key}``."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sluiceway.config.properties import parse_properties
from sluiceway.config.providers.allowed_paths import ALLOWED_PATHS, AllowedPaths
from sluiceway.config.providers.provider import ConfigData, ConfigProvider
from sluiceway.errors import ConfigError


class FileConfigProvider(ConfigProvider):
    """Provides the values in Java .properties files, which must have the same path on all machines that use the config."""

    of_machine = True
    java_class = "org.apache.kafka.common.config.provider.FileConfigProvider"

    def configure(self, params: Mapping[str, str]) -> None:
        self._allowed = AllowedPaths(params.get(ALLOWED_PATHS))

    def check(self, path: str, key: str) -> None:
        if not path or not key:
            raise ConfigError("write ${file:/path/to/file.properties:key}")
        self._allowed.check(path)

    def get(self, path: str, keys: Collection[str]) -> ConfigData:
        if not path:
            return ConfigData()
        file = self._allowed.permitted(path)
        if file is None:
            return ConfigData()
        try:
            found = parse_properties(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(f"Could not read properties from file {path}: {error.strerror}") from error
        except ValueError:  # its message quotes the file, which contains secrets
            raise ConfigError(f"Could not read properties from file {path}: it is not a UTF-8 .properties file") from None
        return ConfigData({key: found[key] for key in keys if key in found})
