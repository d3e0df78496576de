"""CORS and configured response headers."""

from __future__ import annotations

import httpx
import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError
from sluiceway.rest.settings import HeaderRule, RestSettings
from unit.rest.servers import Start


def test_pages_of_allowed_origins_may_call(start: Start) -> None:
    address = start(
        access__control__allow__origin="http://a.com,http://b.com", access__control__allow__methods="GET,PUT"
    ).addresses[0]
    answer = httpx.get(f"{address}/connectors", headers={"origin": "http://b.com"})
    assert answer.headers["access-control-allow-origin"] == "http://b.com"
    assert answer.headers["vary"] == "Origin"
    for origin in ({}, {"origin": "http://c.com"}):
        assert "access-control-allow-origin" not in httpx.get(f"{address}/connectors", headers=origin).headers
    asked = {"origin": "http://a.com", "access-control-request-method": "PUT", "access-control-request-headers": "content-type"}
    preflight = httpx.options(f"{address}/connectors/x/pause", headers=asked)
    assert preflight.status_code == 200
    assert preflight.headers["access-control-allow-methods"] == "GET,PUT"
    assert preflight.headers["access-control-allow-headers"] == "content-type"
    assert (
        "access-control-allow-origin"
        not in httpx.options(f"{address}/connectors", headers=asked | {"origin": "http://c.com"}).headers
    )


def test_pages_may_not_call_by_default(start: Start) -> None:
    answer = httpx.get(f"{start().addresses[0]}/connectors", headers={"origin": "http://a.com"})
    assert "access-control-allow-origin" not in answer.headers


def test_answers_get_the_headers_that_are_configured(start: Start) -> None:
    rules = 'set X-A: 1, "add Cache-Control: no-cache, no-store",add X-A:2, setDate X-Now:ignored'
    address = start(response__http__headers__config=rules).addresses[0]
    for path in ("/connectors", "/nope"):
        headers = httpx.get(address + path).headers
        assert headers.get_list("x-a") == ["1", "2"]
        assert headers["cache-control"] == "no-cache, no-store"
        assert headers["x-now"].endswith(" GMT")


def test_header_rules_are_read_as_connect_writes_them() -> None:
    worker = WorkerConfig.of({"response.http.headers.config": '"add X-B: a, b", set C:d'})
    assert RestSettings.of(worker).headers == (HeaderRule("X-B", "a, b", replaces=False), HeaderRule("C", "d", replaces=True))


@pytest.mark.parametrize("rule", ["x", "drop A: b", "add A", "add : b", "add A b: c"])
def test_a_header_rule_that_is_none_is_refused(rule: str) -> None:
    with pytest.raises(ConfigError, match=r"response\.http\.headers\.config"):
        RestSettings.of(WorkerConfig.of({"response.http.headers.config": rule}))
