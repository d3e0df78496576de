"""The worker's settings of the REST server."""

from __future__ import annotations

import pytest

from sluiceway.errors import ConfigError
from sluiceway.rest.settings import Listener, parse_listener


@pytest.mark.parametrize(
    ("listener", "expected"),
    [
        ("http://:8083", ("http", "", 8083)),
        (" HTTPS://host:1 ", ("https", "host", 1)),
        ("http://[::1]:8083", ("http", "::1", 8083)),
        ("http://127.0.0.1:0", ("http", "127.0.0.1", 0)),
    ],
)
def test_listeners_are_read_as_kafka_writes_them(listener: str, expected: tuple[str, str, int]) -> None:
    assert parse_listener(listener) == Listener(*expected)


@pytest.mark.parametrize(
    "listener", ["", "8083", "localhost:8083", "http://host", "http://host:x", "http://h:70000", "ftp://:8443"]
)
def test_a_listener_that_cannot_be_served_is_refused(listener: str) -> None:
    with pytest.raises(ConfigError, match="for configuration listeners: "):
        parse_listener(listener)
