"""Validates ``exactly.once.support`` and ``transaction.boundary`` of a source connector (KIP-618)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from sluiceway.api import ConnectorTransactionBoundaries, ExactlyOnceSupport, SourceConnector
from sluiceway.config.definition import ValidatedValue
from sluiceway.config.worker import WorkerConfig
from sluiceway.runtime.source.exactly_once import BOUNDARY, SUPPORT, exactly_once_enabled

log = logging.getLogger(__name__)


def check_exactly_once(
    connector: type[SourceConnector], config: Mapping[str, str], worker: WorkerConfig, found: Mapping[str, ValidatedValue]
) -> None:
    """Add the errors of the worker and the connector to the values in ``found``.

    Calls the connector on a new instance that is not started. An exception it raises becomes an error of the value.
    """
    support, boundary = found[SUPPORT], found[BOUNDARY]
    if not support.errors and str(support.value).lower() == "required":
        if not exactly_once_enabled(worker):
            support.errors.append("This worker does not have exactly-once source support enabled.")
        support.errors += _errors(lambda: _lacks_support(connector, config))
    if not boundary.errors and str(boundary.value).lower() == "connector":
        boundary.errors += _errors(lambda: _lacks_boundaries(connector, config))


def _lacks_support(connector: type[SourceConnector], config: Mapping[str, str]) -> str | None:
    if connector().exactly_once_support(config) is ExactlyOnceSupport.SUPPORTED:
        return None
    return "The connector does not support exactly-once semantics with the provided configuration."


def _lacks_boundaries(connector: type[SourceConnector], config: Mapping[str, str]) -> str | None:
    if connector().can_define_transaction_boundaries(config) is ConnectorTransactionBoundaries.SUPPORTED:
        return None
    return (
        "The connector does not support connector-defined transaction boundaries with the given configuration. "
        "Please reconfigure it to use a different transaction boundary definition."
    )


def _errors(check: Callable[[], str | None]) -> list[str]:
    try:
        found = check()
    except Exception as error:
        log.exception("A connector failed while it was asked about exactly-once support")
        return [f"An unexpected error occurred during validation: {error or type(error).__name__}"]
    return [] if found is None else [found]
