"""Runs tests on a copy of the source tree, in which one place is broken at a time."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import NamedTuple

import pytest

from mutants.mutant import ROOT, Mutant
from mutants.pytest_run import FAILURES

_LEFT_OUT = (".git", ".venv*", ".sluiceway", ".hypothesis", ".*_cache", "build", "dist", "images", "metastore_db")
_PASSED, _NOT_RUN = (0,), (4, 5)
"""pytest's exit codes. It has not run if a file or test does not exist, or none is selected."""

_OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "-p", "mutants.pytest_run", "-m", "not long", "--timeout", "100")

_PRELOADED = ("pytest", "hypothesis.strategies", "xdist", "numpy", "pyarrow.compute", "pyarrow.parquet", "sqlalchemy", "orjson")


class Outcome(NamedTuple):
    """The end of a run: the tests that failed, whether any was run, and whether the run took too long."""

    failed: Sequence[str] = ()
    ran: bool = True
    timed_out: bool = False


class Scratch:
    """A copy of the source tree. Its folder is the import root of the tests and of every process that they start.

    ``output`` has what the last run has printed. For a process of its own: it decides what the process's fork server imports.
    """

    def __init__(self, folder: Path) -> None:
        self._root, self._failures, self._output = folder / "tree", folder / "failures", folder / "output"
        shutil.copytree(ROOT, self._root, symlinks=True, ignore=shutil.ignore_patterns(*_LEFT_OUT))
        roots = os.pathsep.join(str(self._root / each) for each in ("plugin", "tests"))
        # Python must not keep the compiled form of a broken module: another mutant of it may have the same size and time.
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        self._environment = {**kept, "PYTHONPATH": roots, "PYTHONDONTWRITEBYTECODE": "1", FAILURES: str(self._failures)}
        # Runs are forks of a process that has imported what most tests need, and nothing of the product.
        self._processes = multiprocessing.get_context("forkserver")
        self._processes.set_forkserver_preload([*_PRELOADED])

    @contextmanager
    def broken(self, mutant: Mutant) -> Iterator[None]:
        """Break the place of a mutant. Raises StaleError."""
        path = self._root / mutant.path
        path.write_text(mutant.applied(path.read_text(encoding="utf-8")), encoding="utf-8")
        try:
            yield
        finally:
            shutil.copy2(ROOT / mutant.path, path)

    def run(self, tests: Sequence[str], limit: float) -> Outcome:
        """Run tests to the first failure, for at most ``limit`` seconds."""
        self._failures.write_text("")
        arguments = [*_OPTIONS, *tests]
        process = self._processes.Process(target=_run_pytest, args=(self._root, self._environment, self._output, arguments))
        process.start()
        try:
            process.join(limit)
            code = process.exitcode
        finally:
            _end_group(process)
        failed = self._failures.read_text(encoding="utf-8").splitlines()
        if code is not None and not failed and code not in (*_PASSED, *_NOT_RUN):
            failed = list(tests[:1])  # the process died
        return Outcome(failed, ran=code not in _NOT_RUN, timed_out=code is None)


@contextmanager
def scratch() -> Iterator[Scratch]:
    """Make a copy of the source tree, and remove it at the end."""
    with tempfile.TemporaryDirectory(prefix="sluiceway-mutants-") as folder:
        yield Scratch(Path(folder))


def end_runs() -> None:
    """End all runs of this process, and what their tests have started."""
    for process in multiprocessing.active_children():
        _end_group(process)


def _run_pytest(root: Path, environment: Mapping[str, str], output: Path, arguments: list[str]) -> None:
    """Run in a new process: become the group of all processes that the tests start, and run pytest in the copy."""
    os.setsid()
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.chdir(root)
    os.environ.clear()
    os.environ.update(environment)
    sys.dont_write_bytecode = True
    others = {"", *map(str, (ROOT, ROOT / "plugin", ROOT / "tests"))}
    sys.path[:] = [*environment["PYTHONPATH"].split(os.pathsep), *(each for each in sys.path if each not in others)]
    sys.exit(pytest.main(arguments))


def _end_group(process: BaseProcess) -> None:
    """End pytest and what its tests left behind."""
    if process.pid is not None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.join()
