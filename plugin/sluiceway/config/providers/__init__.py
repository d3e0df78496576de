"""Config providers: what ``${provider:path:key}`` in a config is replaced by."""

from sluiceway.config.providers.provider import ConfigData, ConfigProvider

__all__ = ["ConfigData", "ConfigProvider"]
