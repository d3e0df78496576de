from __future__ import annotations

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError
from sluiceway.runtime.source.exactly_once import ExactlyOnceSettings, check_not_required, exactly_once_enabled


def worker(support: str | None = None) -> WorkerConfig:
    return WorkerConfig.of({} if support is None else {"exactly.once.source.support": support})


@pytest.mark.parametrize(("support", "enabled"), [(None, False), ("preparing", False), ("Enabled", True)])
def test_only_an_enabled_worker_runs_sources_exactly_once(support: str | None, enabled: bool) -> None:
    assert exactly_once_enabled(worker(support)) is enabled


def test_an_unknown_support_is_rejected() -> None:
    with pytest.raises(ConfigError, match=r"exactly\.once\.source\.support"):
        exactly_once_enabled(worker("yes"))


def test_the_interval_defaults_to_the_workers_flush_interval() -> None:
    settings = ExactlyOnceSettings.of({"transaction.boundary": "INTERVAL"}, WorkerConfig.of({"offset.flush.interval.ms": "77"}))
    assert settings.interval_ms == 77
    assert ExactlyOnceSettings.of({}, worker()).interval_ms == 0


def test_a_connector_that_requires_exactly_once_is_rejected_without_it() -> None:
    with pytest.raises(ConfigError, match=r"exactly\.once\.source\.support=enabled"):
        check_not_required(ExactlyOnceSettings.of({"exactly.once.support": "required"}, worker()))
    check_not_required(ExactlyOnceSettings.of({}, worker()))
