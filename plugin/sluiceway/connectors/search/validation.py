"""Validates the configs of the search connectors. Runs on the driver and, without a connection, on Airflow's API server."""

from __future__ import annotations

import abc
import logging
from collections.abc import Mapping
from contextlib import closing

from sluiceway.api import Connector
from sluiceway.config.definition import ConfigValue, ValidatedValue
from sluiceway.connectors.search.client import FORBIDDEN, UNAUTHORIZED, RefusedError, SearchClient
from sluiceway.connectors.search.connection import PASSWORD, URL, USER, Server
from sluiceway.errors import ConfigError

log = logging.getLogger(__name__)


class SearchConnector(Connector):
    """Base of the search connectors."""

    @classmethod
    @abc.abstractmethod
    def server(cls, config: Mapping[str, str]) -> Server:
        """Return the servers of a config. Raises ConfigError."""

    @classmethod
    @abc.abstractmethod
    def conflicts(cls, values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> Mapping[str, str]:
        """Return the errors of keys that conflict, by the key to change. No I/O."""

    @classmethod
    def try_indexes(cls, config: Mapping[str, str], found: Mapping[str, ValidatedValue]) -> None:
        """Add what is wrong with the indexes to the errors of their keys. The login has been tried.

        Raises OSError if the server cannot be reached.
        """

    @classmethod
    def try_config(cls, config: Mapping[str, str], found: Mapping[str, ValidatedValue]) -> None:
        try:
            with closing(SearchClient(cls.server(config))) as client:
                client.about()
            cls.try_indexes(config, found)
        except OSError as error:
            log.warning("%s", error)
        except RefusedError as error:
            if error.status == FORBIDDEN:  # who may use indexes need not have the right to ask for the server's version
                return
            for key in (USER, PASSWORD) if error.status == UNAUTHORIZED else (URL,):
                found[key].errors.append(str(error))
        except ConfigError as error:  # of a trust or key store
            found[URL].errors.append(str(error))

    @classmethod
    def check(cls, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        definition = cls.config_def()
        found = definition.validate(config)
        if any(found[key.name].errors for key in definition):
            return found
        values = {key.name: found[key.name].value for key in definition}
        for name, message in cls.conflicts(values, config).items():
            found[name].errors.append(str(ConfigError(name, values[name], message)))
        return found
