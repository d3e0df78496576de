"""Tests of requests that another site's page makes a browser send."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi import Depends, FastAPI
from fastapi.testclient import TestClient

from sluiceway.provider.api.access import refuse_other_sites

_TOKEN = {"Authorization": "Bearer x"}
_COOKIE = {"Cookie": "_token=x"}


@pytest.mark.parametrize(
    ("method", "headers", "answer"),
    [
        ("POST", {"Sec-Fetch-Site": "cross-site"}, 403),
        ("PUT", {"Sec-Fetch-Site": "same-site"}, 403),
        ("DELETE", {"Sec-Fetch-Site": "cross-site"}, 403),
        ("POST", {"Sec-Fetch-Site": "same-origin"}, 200),
        ("POST", {"Sec-Fetch-Site": "none"}, 200),
        ("POST", {}, 200),
        ("POST", _COOKIE, 403),
        ("PUT", {**_COOKIE, "Origin": "https://evil.example"}, 403),
        ("PUT", {**_COOKIE, "Origin": "null"}, 403),
        ("POST", {**_COOKIE, "Origin": "http://testserver"}, 200),
        ("POST", {**_COOKIE, "Sec-Fetch-Site": "same-origin"}, 200),
        ("POST", {**_COOKIE, **_TOKEN}, 200),
        ("GET", _COOKIE, 200),
        ("POST", {"Sec-Fetch-Site": "cross-site", **_TOKEN}, 200),
        ("GET", {"Sec-Fetch-Site": "cross-site"}, 200),
    ],
)
def test_pages_of_other_sites_cannot_change_anything_with_a_cookie(method: str, headers: dict[str, str], answer: int) -> None:
    app = FastAPI(dependencies=[Depends(refuse_other_sites)])

    @app.api_route("/", methods=["GET", "POST", "PUT", "DELETE"])
    def any_change() -> Any:
        return {}

    assert TestClient(app).request(method, "/", headers=headers).status_code == answer
