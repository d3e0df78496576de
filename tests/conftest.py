"""Fixtures for all tests."""

from __future__ import annotations

import itertools
import os
import random
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from support.broker import SharedBrokers, shared_bootstrap
from support.databases import (  # noqa: F401 (fixtures)
    database,
    mariadb,
    mariadb_server,
    postgresql,
    postgresql_server,
    sqlite,
)

# A case on a shared machine may take any time.
settings.register_profile("shared machine", deadline=None)
settings.load_profile("shared machine")

_BROKERS = pytest.StashKey[SharedBrokers]()

# Modules that take a minute or more, and Airflow's tests, which one worker runs. They start first, so that short modules are left
# for the end, when the workers must finish together.
_LONGEST = (
    "airflow/",
    "clusters/",
    "cdc/",
    "frames/",
    "integration/test_elastic_executors.py",
    "integration/test_table_sinks.py",
    "integration/test_spark_formats.py",
    "integration/test_driver_process.py",
    "integration/test_exactly_once_failures.py",
    "integration/test_java_sources.py",
    "integration/test_java_sinks.py",
    "integration/test_table_sinks_rest_catalog.py",
    "integration/test_table_sources.py",
    "integration/test_lifecycle.py",
    "integration/test_spark_cluster.py",
    "integration/test_python_archive.py",
    "integration/test_broker.py",
    "integration/test_handover.py",
    "integration/test_task_hosts.py",
    "integration/test_jdbc_debezium.py",
)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Create the shared brokers' folder in the controlling process, before xdist starts its workers."""
    if not hasattr(config, "workerinput") and not config.option.collectonly:
        config.stash[_BROKERS] = SharedBrokers()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let xdist's workers start with the longest modules."""
    if hasattr(config, "workerinput"):
        items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    path = item.nodeid.partition("::")[0].removeprefix("tests/")
    return next((rank for rank, prefix in enumerate(_LONGEST) if path.startswith(prefix)), len(_LONGEST))


class _Modules(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return "tests/airflow" if nodeid.startswith("tests/airflow/") else nodeid.partition("::")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """Distribute whole modules with ``--dist loadscope``; Airflow's tests share one stack and so one worker."""
    return _Modules(config, log) if config.getvalue("dist") == "loadscope" else None


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the shared brokers. Runs at the end of every run, also after Ctrl-C and failures."""
    brokers = config.stash.get(_BROKERS, None)
    if brokers is not None:
        brokers.close()


@pytest.fixture(scope="session")
def kafka_bootstrap() -> str:
    """The address of this worker's broker, which starts with the first test that requests it."""
    return shared_bootstrap()


@pytest.fixture(scope="session")
def unique() -> Callable[[str], str]:
    """Create names that no other test, worker or run uses: ``unique("topic")`` returns ``topic-gw0-3f2a91-1``."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    run = uuid.uuid4().hex[:6]
    numbers = itertools.count(1)

    def name(prefix: str = "test") -> str:
        return f"{prefix}-{worker}-{run}-{next(numbers)}"

    return name


@pytest.fixture
def chance() -> random.Random:
    """Return the generator of random kill times. The seed is printed; SLUICEWAY_FAULT_SEED repeats a run."""
    seed = int(os.environ.get("SLUICEWAY_FAULT_SEED", random.SystemRandom().randrange(10**6)))
    print(f"SLUICEWAY_FAULT_SEED={seed}")
    return random.Random(seed)  # noqa: S311 (where to kill)
