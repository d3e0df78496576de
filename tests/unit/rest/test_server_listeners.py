"""Endpoints that ``listeners`` and ``admin.listeners`` serve."""

from __future__ import annotations

import httpx

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
