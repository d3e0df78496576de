"""Whether a source connector's config may ask for exactly once as it does: what validation adds to its own keys' findings."""

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
    """Add to ``found`` what the worker and the connector have against ``exactly.once.support`` and ``transaction.boundary``.

    The connector is asked on an object of its own that is not started; what it raises is a finding.
    """
    support, boundary = found[SUPPORT], found[BOUNDARY]
    if not support.errors and str(support.value).lower() == "required":
        if not exactly_once_enabled(worker):
            support.errors.append("This worker does not have exactly-once source support enabled.")
        support.errors += _findings(lambda: _lacks_support(connector, config))
    if not boundary.errors and str(boundary.value).lower() == "connector":
        boundary.errors += _findings(lambda: _lacks_boundaries(connector, config))


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


def _findings(ask: Callable[[], str | None]) -> list[str]:
    try:
        finding = ask()
    except Exception as error:
        log.exception("Asking a connector about exactly-once failed")
        return [f"An unexpected error occurred during validation: {error or type(error).__name__}"]
    return [] if finding is None else [finding]
