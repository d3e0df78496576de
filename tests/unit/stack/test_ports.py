"""Free TCP ports, and the owners of ports in use."""

from __future__ import annotations

import os
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sluiceway.errors import MissingToolError
from sluiceway.stack import ports
from sluiceway.stack.ports import free_port, port_is_open, port_owner


def test_a_free_port_lies_outside_the_range_for_outgoing_connections() -> None:
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    port = free_port()
    assert 1024 < port < low
    assert not port_is_open("127.0.0.1", port)


def test_two_servers_that_start_at_the_same_time_get_different_ports(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(ports, "_HIGHEST_PORT", ports._LOWEST_PORT + 6)
    monkeypatch.setattr(ports, "can_bind", lambda _host, _port: True)
    with ThreadPoolExecutor(3) as pool:
        given = list(pool.map(lambda _: free_port(), range(6)))
    assert sorted(given) == [ports._LOWEST_PORT + number for number in range(6)]
    with pytest.raises(MissingToolError, match="Found no free TCP port"):
        free_port()
    old = tmp_path / "sluiceway" / "ports" / str(given[0])
    os.utime(old, (0, 0))
    assert free_port() == given[0], "its server has ended or never started"


def test_a_listening_port_is_open_and_its_owner_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert port_is_open("127.0.0.1", port)
        owner = port_owner(port)
        assert owner is not None
        assert str(os.getpid()) in owner
    assert not port_is_open("127.0.0.1", port)
    assert port_owner(port) is None
