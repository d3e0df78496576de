"""Fixtures of the command line's tests."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from sluiceway.cli import common
from unit.cli.pretend_client import PretendClient


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[PretendClient]:
    client = PretendClient()
    monkeypatch.setattr("sluiceway.rest.client.ConnectClient", lambda *_, **__: client)
    monkeypatch.setenv(common.SERVER_VARIABLE, "http://s")
    return client


@pytest.fixture
def in_utc() -> Iterator[None]:
    """The local time of the test is UTC."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()
