"""Fixtures for all tests."""

from __future__ import annotations

import itertools
import os
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from support.broker import SharedBroker, shared_bootstrap
from support.databases import (  # noqa: F401 (fixtures)
    database,
    mariadb,
    mariadb_server,
    postgresql,
    postgresql_server,
    sqlite,
)

_BROKER = pytest.StashKey[SharedBroker]()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Make the shared broker's folder in the controlling process, before xdist starts its workers."""
    if not hasattr(config, "workerinput") and not config.option.collectonly:
        config.stash[_BROKER] = SharedBroker()


class _TwoHalves(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return "airflow" if nodeid.startswith("tests/airflow/") else "rest"


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """With ``--dist loadscope`` one worker takes Airflow's tests, whose stack has its own broker, the other all the rest."""
    return _TwoHalves(config, log) if config.getvalue("dist") == "loadscope" else None


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the shared broker; called at the end of every run, also after Ctrl-C and after failures."""
    broker = config.stash.get(_BROKER, None)
    if broker is not None:
        broker.close()


@pytest.fixture(scope="session")
def kafka_bootstrap() -> str:
    """The address of the one real broker of this test run, started when the first test asks for it."""
    return shared_bootstrap()


@pytest.fixture(scope="session")
def unique() -> Callable[[str], str]:
    """Make names that no other test, worker or run uses: ``unique("topic")`` gives ``topic-gw0-3f2a91-1``."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    run = uuid.uuid4().hex[:6]
    numbers = itertools.count(1)

    def name(prefix: str = "test") -> str:
        return f"{prefix}-{worker}-{run}-{next(numbers)}"

    return name
