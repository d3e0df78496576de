"""Validation's look into the database: what is wrong with the login stands at the keys that say it. API server or driver."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from sluiceway.config.definition import ValidatedValue
from sluiceway.connectors.jdbc.connection import Database
from sluiceway.connectors.jdbc.url import CONNECTION_URL
from sluiceway.errors import ConnectError, MissingToolError, RetriableError

if TYPE_CHECKING:
    import sqlalchemy as sa

    from sluiceway.connectors.jdbc.connection_keys import ConnectionSettings

log = logging.getLogger(__name__)


def check_login(
    settings: ConnectionSettings,
    found: Mapping[str, ValidatedValue],
    keys: Sequence[str],
    look: Callable[[Database, sa.Connection], None] | None = None,
    *,
    may_be_away: bool = False,
) -> None:
    """Connect once and ``look``; note what is wrong: a refused login at ``keys``, all else at the URL.

    ``may_be_away`` is for who can wait for a database: one that cannot be reached is then only logged.
    """
    database = Database(dataclasses.replace(settings, attempts=1))
    try:
        with database.connect() as connection:
            if look is not None:
                look(database, connection)
    except RetriableError as error:
        if may_be_away:
            log.warning("%s", error)
        else:
            found[CONNECTION_URL].errors.append(str(error))
    except MissingToolError as error:
        found[CONNECTION_URL].errors.append(str(error))
    except ConnectError as error:
        for key in keys:
            found[key].errors.append(str(error))
    finally:
        database.dispose()
