"""The keys that all Iceberg connectors share: those of the catalog."""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway.connectors.iceberg.config import CATALOG_TYPE, CREDENTIAL, PREFIX, TOKEN, URI
from sluiceway.errors import ConfigError, ConnectError


class IcebergKeys:
    """Part of a ``TableFormat``."""

    prefix = PREFIX
    location_key = CATALOG_TYPE
    namespaced = True

    @classmethod
    def key_of(cls, error: ConnectError, config: Mapping[str, str]) -> str:
        """Return the key that the error names, or that of the login, or of the URI of a catalog that has one."""
        from sluiceway.connectors.iceberg.errors import is_login

        if isinstance(error, ConfigError) and error.name is not None:
            return error.name
        if is_login(error.__cause__):
            return TOKEN if config.get(TOKEN) else CREDENTIAL
        return URI if config.get(URI) else CATALOG_TYPE
