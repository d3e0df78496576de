"""Whether the open transactions are looked at, as the config and the user's rights allow. Driver and executor."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from sluiceway.connectors.jdbc.source_horizon import Horizon, NoHorizon, horizon_of
from sluiceway.connectors.jdbc.source_keys import AUTO, BULK, NONE, SourceConfig
from sluiceway.errors import ConnectError

if TYPE_CHECKING:
    from sluiceway.connectors.jdbc.connection import Database

log = logging.getLogger(__name__)


def chosen_horizon(config: SourceConfig, database: Database, raw: Any) -> Horizon:
    """Return who to ask how far may be read. Raises ConnectError where that is required and not allowed."""
    horizon = horizon_of(database.dialect, lambda: _connection_of_its_own(database))
    if config.mode == BULK or config.horizon == NONE:
        return NoHorizon(horizon)
    if horizon.may_see(raw):
        return horizon
    message = (
        f"The user {database.url.user} may not see all open transactions of {database.url.place}, so rows that are "
        f"committed late could be overlooked. {horizon.hint}, or set timestamp.delay.interval.ms to how long transactions take"
    )
    if config.horizon == AUTO:
        log.warning("%s.", message)
        return NoHorizon(horizon)
    raise ConnectError(f"{message}, with sluiceway.horizon=none.")


def _connection_of_its_own(database: Database) -> Any:
    """Return a connection of the driver's, for the caller to close."""
    connection = database.connect()
    fairy = connection.connection
    raw = fairy.driver_connection
    fairy.detach()
    return raw
