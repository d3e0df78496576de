"""Lists Sluiceway's own config providers by alias."""

from __future__ import annotations

CONFIG_PROVIDERS = "sluiceway.config_providers"
"""The entry point group of config providers."""

BUILT_IN = {
    "FileConfigProvider": "sluiceway.config.providers.file:FileConfigProvider",
    "EnvVarConfigProvider": "sluiceway.config.providers.env:EnvVarConfigProvider",
    "DirectoryConfigProvider": "sluiceway.config.providers.directory:DirectoryConfigProvider",
    "AirflowConfigProvider": "sluiceway.provider.config_provider:AirflowConfigProvider",
}
