"""Connects to the database during validation, and reports a failure at the keys that cause it.

Runs on the API server and on the driver.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from sluiceway.config.definition import ValidatedValue
from sluiceway.connectors.jdbc.connection import Database
from sluiceway.connectors.jdbc.url import CONNECTION_URL
from sluiceway.errors import ConnectError, MissingToolError, RetriableError, TemporaryProblem

if TYPE_CHECKING:
    import sqlalchemy as sa

    from sluiceway.connectors.jdbc.connection_keys import ConnectionSettings

log = logging.getLogger(__name__)


def check_login(
    settings: ConnectionSettings,
    values: Mapping[str, ValidatedValue],
    keys: Sequence[str],
    check: Callable[[Database, sa.Connection], None] | None = None,
    *,
    may_be_unreachable: bool = False,
) -> None:
    """Connect once and run ``check``; add a refused login to the errors of ``keys``, any other failure to those of the URL.

    With ``may_be_unreachable``, a database that cannot be reached is only logged, for connectors that wait for it.
    """
    database = Database(dataclasses.replace(settings, attempts=1))
    try:
        with database.connect() as connection:
            if check is not None:
                check(database, connection)
    except RetriableError as error:
        if may_be_unreachable:
            log.warning("%s", error)
        else:
            values[CONNECTION_URL].errors.append(TemporaryProblem(error))
    except MissingToolError as error:
        values[CONNECTION_URL].errors.append(str(error))
    except ConnectError as error:
        for key in keys:
            values[key].errors.append(str(error))
    finally:
        database.dispose()
