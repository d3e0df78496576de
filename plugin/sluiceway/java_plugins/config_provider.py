"""Runs the Java config providers of ``plugin.path``, in the Java process of the calling thread."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import ClassVar

from sluiceway.config.parsing import parse_list
from sluiceway.config.providers.provider import ConfigData, ConfigProvider
from sluiceway.errors import ConfigError, ConnectError
from sluiceway.java_plugins.finder import DISCOVERY, JAVA, OFF
from sluiceway.java_plugins.hosts import call_new, reference
from sluiceway.java_plugins.index import HYBRID_WARN, JavaPlugin, PluginIndex

_KIND = "configprovider"


class JavaConfigProvider(ConfigProvider):
    """A config provider whose class is Java. Each ``get`` creates, configures, and closes an instance of the class."""

    plugin: ClassVar[JavaPlugin]
    _params: Mapping[str, str]

    def configure(self, params: Mapping[str, str]) -> None:
        self._params = dict(params)

    def get(self, path: str, keys: Collection[str]) -> ConfigData:
        created = {"plugin": reference(self.plugin), "params": self._params}
        try:
            found = call_new("provider", created, self.plugin, "get", {"path": path, "keys": list(keys)})
        except ConnectError as error:
            raise ConfigError(f"Config provider {self.plugin.class_name}: {error}") from error
        return ConfigData(found["values"], found["ttl"])


def java_config_provider(name: str, worker: Mapping[str, str]) -> type[ConfigProvider] | None:
    """Return the config provider in a worker's ``plugin.path`` with this full name or alias, or None. Starts no JVM."""
    folders = tuple(Path(each).expanduser().absolute() for each in parse_list(worker.get("plugin.path")))
    if not folders or worker.get(JAVA, "").strip().lower() == OFF:
        return None
    plugin = _index(folders, worker.get(DISCOVERY, HYBRID_WARN).strip().lower()).find(name, _KIND)
    if plugin is None:
        return None
    return type(plugin.class_name.rpartition(".")[2], (JavaConfigProvider,), {"plugin": plugin})


@functools.lru_cache(maxsize=1)
def _index(folders: tuple[Path, ...], discovery: str) -> PluginIndex:
    return PluginIndex(folders, discovery)
