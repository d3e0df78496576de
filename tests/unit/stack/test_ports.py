"""Free TCP ports, and the owners of ports in use."""

from __future__ import annotations

import os
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sluiceway.errors import MissingToolError
from sluiceway.stack import broker, ports
from sluiceway.stack.broker import EmbeddedBroker
from sluiceway.stack.ports import free_port, port_is_open, port_owner, preferred_port, release_port


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


def test_a_preferred_port_is_given_while_it_is_free(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert preferred_port(port) != port, "a process listens there"
    assert preferred_port(port) == port
    assert preferred_port(port) != port, "another server is about to listen there"
    release_port(port)
    release_port(port)
    assert preferred_port(port) == port


@pytest.mark.parametrize("free", [True, False])
@pytest.mark.parametrize(
    ("asked", "preferred", "recorded", "chosen_if_free", "chosen_if_not"),
    [
        (None, 9092, None, 9092, "another"),
        (None, 9092, 4711, 4711, "another"),
        (4711, 9092, None, 4711, "refused"),
        (None, None, 4711, 4711, "refused"),
        (None, None, None, "another", "another"),
    ],
    ids=str,
)
def test_the_port_of_a_broker(
    asked: int | None,
    preferred: int | None,
    recorded: int | None,
    chosen_if_free: int | str,
    chosen_if_not: int | str,
    free: bool,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for module in (ports, broker):
        monkeypatch.setattr(module, "can_bind", lambda _host, port: free or port not in (4711, 9092))
    if recorded:
        (tmp_path / "port").write_text(str(recorded))
    embedded = EmbeddedBroker(tmp_path, asked, preferred=preferred)
    wanted = chosen_if_free if free else chosen_if_not
    if wanted == "refused":
        with pytest.raises(MissingToolError, match="it is in use"):
            embedded._choose_port()
    elif wanted == "another":
        assert embedded._choose_port() not in (4711, 9092)
    else:
        assert embedded._choose_port() == wanted


def test_a_listening_port_is_open_and_its_owner_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert port_is_open("127.0.0.1", port)
        owner = port_owner(port)
        assert owner is not None
        assert str(os.getpid()) in owner
    assert not port_is_open("127.0.0.1", port)
    assert port_owner(port) is None
