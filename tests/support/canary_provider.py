"""A config provider that notes which references are resolved."""

from __future__ import annotations

from collections.abc import Collection

from sluiceway.config.providers import ConfigData, ConfigProvider

READ: list[str] = []
"""The paths and keys that were read, for all instances in this process."""


class CanaryProvider(ConfigProvider):
    """Gives the key as the value."""

    def get(self, path: str, keys: Collection[str]) -> ConfigData:
        READ.extend(f"{path}:{key}" for key in keys)
        return ConfigData({key: key for key in keys})
