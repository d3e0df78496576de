"""Config providers, which supply the values of references (``${provider:path:key}``) in configs."""

from sluiceway.config.providers.provider import ConfigData, ConfigProvider

__all__ = ["ConfigData", "ConfigProvider"]
