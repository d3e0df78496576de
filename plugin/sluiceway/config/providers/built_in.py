"""Lists Sluiceway's own config providers by alias, and names what finds others in jars."""

from __future__ import annotations

CONFIG_PROVIDERS = "sluiceway.config_providers"
"""The entry point group of config providers."""

BUILT_IN = {
    "FileConfigProvider": "sluiceway.config.providers.file:FileConfigProvider",
    "EnvVarConfigProvider": "sluiceway.config.providers.env:EnvVarConfigProvider",
    "DirectoryConfigProvider": "sluiceway.config.providers.directory:DirectoryConfigProvider",
    "AirflowConfigProvider": "sluiceway.provider.config_provider:AirflowConfigProvider",
}

IN_JARS = "sluiceway.java_plugins.config_provider:java_config_provider"
"""A function that returns the config provider of this name in the ``plugin.path`` of worker properties, or None.

It is named, not imported, because it depends on this package.
"""
