"""Provides the contents of files in a folder: ``${directory:/path/to/secrets:file-name}``, as Kubernetes mounts secrets."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from pathlib import Path

from sluiceway.config.providers.allowed_paths import ALLOWED_PATHS, AllowedPaths
from sluiceway.config.providers.provider import ConfigData, ConfigProvider
from sluiceway.errors import ConfigError

log = logging.getLogger(__name__)


class DirectoryConfigProvider(ConfigProvider):
    """Provides the contents of a folder's files by file name."""

    of_machine = True
    java_class = "org.apache.kafka.common.config.provider.DirectoryConfigProvider"

    def configure(self, params: Mapping[str, str]) -> None:
        self._allowed = AllowedPaths(params.get(ALLOWED_PATHS))

    def check(self, path: str, key: str) -> None:
        if not path or not key or "/" in key:
            raise ConfigError("write ${directory:/path/to/folder:file-name}")
        self._allowed.check(path)

    def get(self, path: str, keys: Collection[str]) -> ConfigData:
        folder = self._allowed.permitted(path) if path else None
        if folder is None:
            return ConfigData()
        if not folder.is_dir():
            log.warning("The path %s is not a directory", path)
            return ConfigData()
        return ConfigData({key: _content(folder / key) for key in keys if "/" not in key and (folder / key).is_file()})


def _content(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"Could not read file {file} for property {file.name}: {why}") from error
