"""Decides what happens to an event of the binary log that the connectors cannot read."""

from __future__ import annotations

import logging

from sluiceway.connectors.cdc.mysql.binlog.events import Header
from sluiceway.errors import ConnectError

log = logging.getLogger(__name__)


def pass_over(header: Header, file: str, mode: str) -> None:
    """Pass over an event unless it may hold changes and ``event.deserialization.failure.handling.mode`` is fail.

    Raises:
        ConnectError: it may, and the mode is.
    """
    if header.has_no_changes:
        return
    message = (
        f"The binary log has an event of type {header.kind} at {file}:{header.position}, which may hold changes and which this "
        "connector does not read."
    )
    if mode == "fail":
        raise ConnectError(
            f"{message} To go on without them, set event.deserialization.failure.handling.mode=warn; read the tables again "
            "afterwards."
        )
    log.log(logging.WARNING if mode == "warn" else logging.DEBUG, "%s It is skipped.", message)
