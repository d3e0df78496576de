"""Tests of the keys of the connection."""

from __future__ import annotations

import pytest
from sluiceway.errors import ConfigError

from acme_orders.config import CONNECTION


@pytest.mark.parametrize(
    "url", ["", "orders.example.com", "ftp://orders", "http://", "http://orders:x", "http://orders?a=b"]
)
def test_what_is_not_the_url_of_a_service_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="url"):
        CONNECTION.parse({"url": url})


def test_a_login_in_the_url_is_refused_and_not_shown() -> None:
    with pytest.raises(ConfigError, match="must not have a login") as refused:
        CONNECTION.parse({"url": "http://ann:a-secret-token@orders"})
    assert "a-secret-token" not in str(refused.value)
