"""Masks secrets in connector configs that the command line prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sluiceway.config.masking import is_secret, masked, shown
from sluiceway.config.plugin_keys import plugin_keys, prefix_of
from sluiceway.errors import ConnectError

if TYPE_CHECKING:
    from sluiceway.rest.client import ConnectClient

__all__ = ["DeclaredPasswords", "is_secret", "masked", "masked_by_type", "shown"]


class DeclaredPasswords:
    """Knows which keys the plugins of a server declare with type password. Asks the server once for each class."""

    def __init__(self, api: ConnectClient) -> None:
        self._api = api
        self._names: dict[str, frozenset[str]] = {}

    def keys(self, *configs: Mapping[str, str] | None) -> set[str]:
        """Return the keys of type password of the classes that configs name; none of a class that the server does not know."""
        named = [each for config in configs for each in plugin_keys(config or {}).items()]
        return {f"{prefix_of(key)}{name}" for key, class_name in named for name in self._of(class_name)}

    def _of(self, class_name: str) -> frozenset[str]:
        if class_name not in self._names:
            try:
                declared = self._api.plugin_config(class_name) if class_name else []
            except ConnectError:
                declared = []
            self._names[class_name] = frozenset(key["name"] for key in declared if key.get("type") == "PASSWORD")
        return self._names[class_name]


def masked_by_type(api: ConnectClient, config: Mapping[str, str]) -> dict[str, str]:
    """Return a config with hidden secrets: also those that only its plugins declare as such."""
    return masked(config, DeclaredPasswords(api).keys(config))
