"""Fixtures of all tests: the service, with its sample documents."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest
from service import Service

TOKEN = "a-secret-token"


@pytest.fixture
def service() -> Iterator[Service]:
    """A service on this machine that asks for a token."""
    with Service(token=TOKEN) as running:
        running.add_samples()
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def connection(service: Service) -> dict[str, str]:
    """The keys of the connection to the service."""
    return {"url": service.url, "token": TOKEN}


@pytest.fixture
def nowhere() -> str:
    """The URL of a service that does not run."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"
