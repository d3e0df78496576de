from __future__ import annotations

import socket
from typing import Any

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError, KafkaClientError
from sluiceway.kafka import reachability
from sluiceway.kafka.reachability import check_brokers

HOST = "nowhere.invalid"


@pytest.fixture(autouse=True)
def name_servers_that_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer for unknown hosts as a name server does, also where none can be reached."""
    original = socket.getaddrinfo

    def answer(host: str, *more: Any) -> Any:
        if host.endswith(".invalid"):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return original(host, *more)

    monkeypatch.setattr(socket, "getaddrinfo", answer)


def check(servers: str) -> None:
    check_brokers(WorkerConfig.of({"bootstrap.servers": servers}))


@pytest.mark.parametrize(
    "address", ["a:0", "a:65536", "a:kafka", ":9092", "a b:9092", "http://a:9092/", "a:9092:9092", "[::1", "::1"]
)
def test_what_is_no_address_is_refused_without_a_request(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reachability, "admin_client", None)
    with pytest.raises(ConfigError, match="is no address of a broker"):
        check(f"localhost:9092,{address}")


@pytest.mark.parametrize("servers", ["", " , "])
def test_no_address_is_refused(servers: str) -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers is empty"):
        check(servers)


@pytest.mark.parametrize("servers", [f"{HOST}:9092", f"{HOST}:9092,other.invalid", f"PLAINTEXT://{HOST}:9092", f"{'a' * 64}.b:1"])
def test_hosts_that_do_not_exist_are_a_mistake_and_named(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reachability, "admin_client", None)
    with pytest.raises(ConfigError, match="no such host") as raised:
        check(servers)
    assert servers in str(raised.value)


@pytest.mark.parametrize("servers", [f"{HOST}:9092,localhost:1", "127.0.0.1:1", "[::1]:1"])
def test_hosts_of_which_one_exists_are_asked(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reachability, "_ANSWER_SECONDS", 0.1)
    with pytest.raises(KafkaClientError, match=r"Cannot reach Kafka at .* Check bootstrap\.servers"):
        check(servers)


def test_name_servers_that_do_not_answer_are_no_mistake_of_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_answer(*_: object) -> None:
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", no_answer)
    monkeypatch.setattr(reachability, "_ANSWER_SECONDS", 0.1)
    with pytest.raises(KafkaClientError, match=f"Cannot reach Kafka at {HOST}:9092"):
        check(f"{HOST}:9092")
