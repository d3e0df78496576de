from __future__ import annotations

from collections.abc import Mapping

import pytest

from sluiceway.api import ConnectorTransactionBoundaries, ExactlyOnceSupport
from sluiceway.config.connector import SOURCE
from sluiceway.config.worker import WorkerConfig
from sluiceway.herder.validation import check_exactly_once
from support.engine_connectors import ScriptedSourceConnector

REQUIRED = {"exactly.once.support": "required"}
BY_CONNECTOR = {"transaction.boundary": "Connector"}


class Able(ScriptedSourceConnector):
    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED

    def can_define_transaction_boundaries(self, config: Mapping[str, str]) -> ConnectorTransactionBoundaries:
        return ConnectorTransactionBoundaries.SUPPORTED


class Failing(ScriptedSourceConnector):
    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        raise ValueError("cannot say")


def findings(connector: type[ScriptedSourceConnector], config: dict[str, str], support: str = "enabled") -> list[str]:
    found = SOURCE.validate(config)
    check_exactly_once(connector, config, WorkerConfig.of({"exactly.once.source.support": support}), found)
    return [error for value in found.values() for error in value.errors]


def test_a_connector_is_not_called_unless_its_config_requires_it() -> None:
    assert findings(Failing, {}) == []
    assert findings(Failing, {}, "disabled") == []


def test_required_is_accepted_if_connector_and_worker_support_exactly_once() -> None:
    assert findings(Able, REQUIRED | BY_CONNECTOR) == []


def test_required_is_refused_if_the_worker_has_exactly_once_support_disabled() -> None:
    [finding] = findings(Able, REQUIRED, "preparing")
    assert "This worker does not have" in finding


@pytest.mark.parametrize("config", [REQUIRED, BY_CONNECTOR])
def test_a_connector_without_exactly_once_support_is_refused(config: dict[str, str]) -> None:
    [finding] = findings(ScriptedSourceConnector, config)
    assert finding.startswith("The connector does not support")


def test_an_exception_of_the_connector_becomes_the_error() -> None:
    assert findings(Failing, REQUIRED) == ["An unexpected error occurred during validation: cannot say"]


def test_an_invalid_value_is_reported_once() -> None:
    assert len(findings(ScriptedSourceConnector, {"transaction.boundary": "never"})) == 1
