"""One real stack for all tests of this folder: starting it takes half a minute."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.airflow_home import isolate_airflow
from support.stack import RunningStack

isolate_airflow()


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    running = RunningStack(tmp_path_factory.mktemp("stack"))
    yield running
    running.close()


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the connectors' files."""
    return tmp_path_factory.mktemp("files")
