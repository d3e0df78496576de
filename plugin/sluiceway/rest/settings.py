"""The worker's settings of the REST server: listeners, CORS and response headers. No I/O."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass

from sluiceway.config.parsing import parse_list
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError

_SCHEMES = ("http", "https")
_ACTIONS = ("set", "add", "setDate", "addDate")
_CORS_DEFAULT = ("GET", "POST", "HEAD")  # methods that need no preflight request


@dataclass(frozen=True, slots=True)
class Listener:
    """An address to listen on. An empty ``host`` means all interfaces; port 0 means any free port."""

    scheme: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class HeaderRule:
    """A header added to every response; ``replaces`` overwrites an existing one. A ``value`` of None is the current date."""

    name: str
    value: str | None
    replaces: bool


@dataclass(frozen=True, slots=True)
class CorsRules:
    """Origins whose scripts may call the API, and the methods they may use. The origin "*" allows all."""

    origins: tuple[str, ...] = ()
    methods: tuple[str, ...] = _CORS_DEFAULT


@dataclass(frozen=True, slots=True)
class RestSettings:
    """Settings of the REST server. ``admin_listeners``: None serves ``/admin`` on ``listeners``; empty serves it nowhere."""

    listeners: tuple[Listener, ...]
    admin_listeners: tuple[Listener, ...] | None = None
    cors: CorsRules = CorsRules()
    headers: tuple[HeaderRule, ...] = ()

    @classmethod
    def of(cls, worker: WorkerConfig) -> RestSettings:
        """Read the worker's keys. Raises ConfigError."""
        raw = worker.raw
        listeners = _listeners("listeners", worker.text("listeners"))
        if not listeners:
            raise ConfigError("listeners", "", "The REST API needs at least one listener, such as http://:8083")
        admin = raw.get("admin.listeners")
        return cls(
            listeners,
            None if admin is None else _listeners("admin.listeners", admin),
            CorsRules(_list(raw, "access.control.allow.origin"), _list(raw, "access.control.allow.methods") or _CORS_DEFAULT),
            _header_rules(raw.get("response.http.headers.config", "")),
        )


def parse_listener(listener: str, key: str = "listeners") -> Listener:
    """Parse ``http://host:port``. Raises ConfigError."""
    scheme, separator, address = listener.strip().partition("://")
    host, _, port = address.rpartition(":")
    if not separator or not port.isdecimal() or int(port) > 65535:
        raise ConfigError(key, listener, "Expected http://host:port. Leave out the host to listen on all interfaces")
    if scheme.lower() not in _SCHEMES:
        raise ConfigError(key, listener, f"The protocol of a listener must be one of {', '.join(_SCHEMES)}")
    return Listener(scheme.lower(), host.strip("[]"), int(port))


def _listeners(key: str, text: str) -> tuple[Listener, ...]:
    return tuple(parse_listener(each, key) for each in parse_list(text))


def _list(raw: Mapping[str, str], key: str) -> tuple[str, ...]:
    return tuple(parse_list(raw.get(key)))


def _header_rules(text: str) -> tuple[HeaderRule, ...]:
    """Parse ``add Cache-Control: no-cache, "set X-A: b, c"``. Quotes allow a comma in a value."""
    rules = next(csv.reader([text], skipinitialspace=True), [])
    return tuple(_header_rule(rule.strip()) for rule in rules if rule.strip())


def _header_rule(rule: str) -> HeaderRule:
    action, _, header = rule.partition(" ")
    name, colon, value = header.partition(":")
    if action not in _ACTIONS or not colon or not name.strip() or " " in name.strip():
        raise ConfigError(
            "response.http.headers.config",
            rule,
            f"Expected '<action> <name>:<value>' with an action of {', '.join(_ACTIONS)}",
        )
    return HeaderRule(name.strip(), None if action.endswith("Date") else value.strip(), action.startswith("set"))
