"""Endpoints that ``listeners`` and ``admin.listeners`` serve."""

from __future__ import annotations

import ssl
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from sluiceway.rest.listening import ListenerGroup
from sluiceway.rest.settings import Listener
from unit.rest.servers import FREE_PORT, Start, status_of_connectors


def test_admin_is_served_on_all_listeners_by_default(start: Start) -> None:
    assert httpx.get(f"{start().addresses[0]}/admin/loggers/root").status_code == 200


def test_admin_listeners_serve_admin_and_nothing_else_and_the_others_all_but_that(start: Start) -> None:
    server = start(admin__listeners=FREE_PORT)
    (main,), (admin,) = server.addresses, server.admin_addresses
    assert main != admin
    assert httpx.get(f"{admin}/admin/loggers/root").status_code == 200
    assert httpx.get(f"{admin}/connectors").json() == {"error_code": 404, "message": "HTTP 404 Not Found"}
    assert httpx.get(f"{main}/admin/loggers/root").status_code == 404
    assert status_of_connectors(main) == 200


def test_no_admin_listeners_turn_admin_off(start: Start) -> None:
    server = start(admin__listeners="")
    assert server.admin_addresses == []
    assert httpx.get(f"{server.addresses[0]}/admin/loggers").status_code == 404
    assert status_of_connectors(server.addresses[0]) == 200


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_servers_are_made_with_what_the_oldest_uvicorn_knows(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow's own constraints hold one that has no argument for a TLS context."""
    oldest = {
        *(
            "app",
            "host",
            "port",
            "uds",
            "fd",
            "loop",
            "http",
            "ws",
            "lifespan",
            "log_config",
            "log_level",
            "access_log",
            "workers",
        ),
        *("proxy_headers", "server_header", "date_header", "forwarded_allow_ips", "root_path", "limit_concurrency", "backlog"),
        *("limit_max_requests", "timeout_keep_alive", "timeout_notify", "timeout_graceful_shutdown", "headers", "factory"),
        *("ssl_keyfile", "ssl_certfile", "ssl_keyfile_password", "ssl_version", "ssl_cert_reqs", "ssl_ca_certs", "ssl_ciphers"),
    }
    given: set[str] = set()
    made = uvicorn.Config.__init__

    def note(self: uvicorn.Config, app: FastAPI, **options: Any) -> None:
        given.update(options)
        made(self, app, **options)

    monkeypatch.setattr(uvicorn.Config, "__init__", note)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if scheme == "https" else None
    ListenerGroup([Listener(scheme, "localhost", 0)], FastAPI(), context)
    assert given
    assert given <= oldest
