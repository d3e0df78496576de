"""Masks secrets in connector configs that the command line prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sluiceway.config.connector import CONNECTOR_CLASS
from sluiceway.config.masking import is_secret, masked, shown
from sluiceway.errors import ConnectError

if TYPE_CHECKING:
    from sluiceway.rest.client import ConnectClient

__all__ = ["is_secret", "masked", "masked_by_type", "password_keys", "shown"]


def masked_by_type(api: ConnectClient, config: Mapping[str, str]) -> dict[str, str]:
    """Return a config with hidden secrets: also those that only the connector's class declares as such."""
    return masked(config, password_keys(api, config))


def password_keys(api: ConnectClient, config: Mapping[str, str]) -> set[str]:
    """Return the keys that the server says to be of type password; none if it does not know the connector's class."""
    try:
        declared = api.plugin_config(config[CONNECTOR_CLASS]) if config.get(CONNECTOR_CLASS) else []
    except ConnectError:
        return set()
    return {key["name"] for key in declared if key.get("type") == "PASSWORD"}
