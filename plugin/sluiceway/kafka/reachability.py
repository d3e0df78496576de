"""Checks within seconds that the brokers of ``bootstrap.servers`` answer, for callers that must not wait for a wrong address."""

from __future__ import annotations

import re
import socket

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError
from sluiceway.kafka.answers import answer
from sluiceway.kafka.clients import admin_client

_ANSWER_SECONDS = 8.0
_ADDRESS = re.compile(r"(?:[A-Za-z0-9_]+://)?(?:\[(?P<six>[^\]]+)\]|(?P<host>[^:/\s\[\]]+))(?::(?P<port>\d{1,5}))?")
_MAX_PORT = 65_535
_KEY = "bootstrap.servers"


def check_brokers(worker: WorkerConfig) -> None:
    """Ask the brokers of a worker for a description of their cluster.

    Raises:
        ConfigError: an address is invalid, or no host name of them exists. To try again would not help.
        KafkaClientError: no broker has answered within 8 s.
    """
    servers = worker.bootstrap_servers
    hosts = [_host(each.strip(), servers) for each in servers.split(",") if each.strip()]
    if not hosts:
        raise ConfigError(f"{_KEY} is empty. Set it to the addresses of the Kafka brokers, as host:port.")
    if not any(_may_exist(host) for host in hosts):
        raise ConfigError(
            f"Cannot reach Kafka at {servers}: no such host. Check {_KEY} in the worker file or the Airflow connection, and that "
            "the name can be resolved on this machine."
        )
    admin = admin_client(worker)  # in a variable: a client that is garbage ends its requests
    answer(admin.describe_cluster(request_timeout=_ANSWER_SECONDS), f"reach Kafka at {servers}")


def _host(address: str, servers: str) -> str:
    found = _ADDRESS.fullmatch(address)
    if found is None or not 0 < int(found["port"] or 1) <= _MAX_PORT:
        raise ConfigError(_KEY, servers, f"{address!r} is no address of a broker. It must be host:port, such as kafka:9092")
    return found["six"] or found["host"]


def _may_exist(host: str) -> bool:
    """Return False if name servers say that there is no such host, and True if they do not answer."""
    try:
        socket.getaddrinfo(host, None)
    except socket.gaierror as error:
        return error.errno not in (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))
    except UnicodeError:  # a label that is empty or too long
        return False
    return True
