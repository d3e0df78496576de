"""Opening connections."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from contextlib import suppress

import pytest

from sluiceway.connectors.jdbc.connection import Database
from sluiceway.connectors.jdbc.connection_keys import ConnectionSettings
from sluiceway.connectors.jdbc.dialects import parse_url
from sluiceway.errors import RetriableError


class Batch:
    """An object that the caller of ``connect`` holds."""


@pytest.fixture
def no_garbage_collection() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_garbage_collection")
@pytest.mark.parametrize("url", ["jdbc:postgresql://127.0.0.1:1/d", "jdbc:mysql://127.0.0.1:1/d"])
def test_failed_attempts_do_not_keep_their_callers_objects_in_memory(url: str) -> None:
    database = Database(ConnectionSettings(parse_url(url), attempts=1))

    def attempt() -> weakref.ref[Batch]:
        batch = Batch()
        with suppress(RetriableError):  # pytest.raises would keep the error
            database.connect()
        return weakref.ref(batch)

    first = attempt()
    attempt()
    assert first() is None
