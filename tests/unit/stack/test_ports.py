"""Free TCP ports, and the owners of ports in use."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from sluiceway.stack.ports import free_port, port_is_open, port_owner


def test_a_free_port_lies_outside_the_range_for_outgoing_connections() -> None:
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    port = free_port()
    assert 1024 < port < low
    assert not port_is_open("127.0.0.1", port)


def test_a_listening_port_is_open_and_its_owner_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert port_is_open("127.0.0.1", port)
        owner = port_owner(port)
        assert owner is not None
        assert str(os.getpid()) in owner
    assert not port_is_open("127.0.0.1", port)
    assert port_owner(port) is None
