"""Fixtures for all tests."""

from __future__ import annotations

import gc
import itertools
import json
import os
import random
import uuid
from collections import defaultdict
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from support import explain, fuzz
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

#: Seconds that each module took, written with ``--write-durations``. The longest start first, so that workers finish together.
DURATIONS = Path(__file__).with_name("durations.json")

_seconds: defaultdict[str, float] = defaultdict(float)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-durations", action="store_true", help=f"write the modules' seconds into {DURATIONS.name}")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Create the shared brokers' folder in the controlling process, before xdist starts its workers."""
    if not hasattr(config, "workerinput") and not config.option.collectonly:
        config.stash[_BROKERS] = SharedBrokers()
    explain.install()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to a failure what died, and what the connectors said."""
    report = yield
    if report.failed and (text := explain.report()):
        report.sections.append(("What was there", text))
    if call.when == "teardown":
        explain.forget()
    return report


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Import the tests without looking for garbage, which takes a fifth of the time. Later looks leave out what is here."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let xdist's workers start with the longest modules."""
    if hasattr(config, "workerinput"):
        seconds: defaultdict[str, float] = defaultdict(float)
        for name, taken in json.loads(DURATIONS.read_text()).items():
            seconds[_scope(name)] += taken
        items.sort(key=lambda item: -seconds[_scope(item.nodeid)])


def _scope(nodeid: str) -> str:
    """Return what one worker runs as a whole: a module, and all of Airflow's tests, because they share a stack."""
    return "tests/airflow" if nodeid.startswith("tests/airflow/") else nodeid.partition("::")[0]


class _Modules(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return _scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """Distribute whole modules with ``--dist loadscope``; Airflow's tests share one stack and so one worker."""
    return _Modules(config, log) if config.getvalue("dist") == "loadscope" else None


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[report.nodeid.partition("::")[0]] += report.duration


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take the figures of a worker, which has none if it died."""
    output = getattr(node, "workeroutput", {})
    fuzz.FIGURES.extend(output.get("figures", ()))
    for test, (cases, seconds) in output.get("ran", {}).items():
        fuzz.ran(test, cases, seconds)


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.TestReport, config: pytest.Config) -> tuple[str, str, str] | None:
    """Name a failed test among the dots at once: a run of minutes may be ended before its summary."""
    if not report.failed or config.get_verbosity() > 0:
        return None
    return "failed" if report.when == "call" else "error", f"\nFAILED {report.nodeid}\n", "FAILED"


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Give the figures of a worker to the controlling process. Write the durations, if asked to; others keep theirs."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput |= {"figures": fuzz.FIGURES, "ran": fuzz.RAN}
    if session.config.option.write_durations and not hasattr(session.config, "workerinput"):
        known = {name: taken for name, taken in json.loads(DURATIONS.read_text()).items() if Path(name).exists()}
        new = {name: round(taken, 1) for name, taken in _seconds.items()}
        DURATIONS.write_text(json.dumps({**known, **new}, indent=0, sort_keys=True) + "\n")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures of tests with generated arguments, if ``CASES`` was set, and of others of `make test-security`."""
    for line in (*fuzz.table(), *fuzz.FIGURES):
        terminalreporter.write_line(line)


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
