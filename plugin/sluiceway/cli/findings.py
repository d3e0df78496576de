"""What the server finds in a config, in readable form."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sluiceway.cli.secrets import shown
from sluiceway.errors import ConfigError

if TYPE_CHECKING:
    from sluiceway.rest.client import ConnectClient

_CLASS = "connector.class"
# What others than the connector read; the server does not tell of all of these keys.
_OPEN = ("airflow.", "spark.", "sluiceway.", "producer.override.", "consumer.override.", "admin.override.", "topic.creation.")
_PREFIXED = ("key.converter.", "value.converter.", "header.converter.", "transforms.", "predicates.")


@dataclass(frozen=True)
class Finding:
    """What is to be said about one key."""

    key: str
    value: str | None
    text: str


@dataclass(frozen=True)
class Findings:
    """What is wrong with a connector's config (``errors``), and what nobody will read (``warnings``)."""

    name: str
    errors: list[Finding]
    warnings: list[Finding]

    def lines(self) -> Iterator[str]:
        """Yield a line for each, after one that sums them up."""
        if not self.errors and not self.warnings:
            yield f"{self.name}: valid"
            return
        yield f"{self.name}: {len(self.errors)} error(s), {len(self.warnings)} warning(s)"
        for kind, found in (("error", self.errors), ("warning", self.warnings)):
            for each in found:
                value = "" if each.value is None else f" = {each.value}"
                yield f"  {kind:<7}  {each.key}{value}"
                yield f"           {each.text}"

    def to_json(self) -> dict[str, Any]:
        def told(found: list[Finding]) -> list[dict[str, str | None]]:
            return [{"key": each.key, "value": each.value, "message": each.text} for each in found]

        return {"name": self.name, "errors": told(self.errors), "warnings": told(self.warnings)}


def checked(api: ConnectClient, name: str, config: Mapping[str, str]) -> Findings:
    """Ask the server about a config; raises RestError, and ConfigError without a connector class to ask about."""
    if not config.get(_CLASS):
        raise ConfigError(f"Connector {name} does not say its {_CLASS}.")
    return findings(name, config, api.validate(config[_CLASS], config))


def findings(name: str, config: Mapping[str, str], answer: Mapping[str, Any]) -> Findings:
    """Return what the server's answer to a validation says, secrets hidden. Pure."""
    secret = {each["definition"]["name"] for each in answer["configs"] if each["definition"].get("type") == "PASSWORD"}

    def told(key: str) -> str | None:
        value = config.get(key)
        return value if value is None else ("[hidden]" if key in secret else shown(key, value))

    errors = [
        Finding(each["value"]["name"], told(each["value"]["name"]), " ".join(text.split()))
        for each in answer["configs"]
        for text in each["value"]["errors"]
    ]
    known = {each["definition"]["name"] for each in answer["configs"]}
    warnings = [Finding(key, told(key), _unread(key, known)) for key in config if not _is_read(key, known)]
    return Findings(name, errors, warnings)


def _is_read(key: str, known: set[str]) -> bool:
    return key in known or key.startswith((*_OPEN, *_PREFIXED))


def _unread(key: str, known: set[str]) -> str:
    alike = difflib.get_close_matches(key, known, n=1, cutoff=0.75)
    return "no such key is known" + (f"; did you mean {alike[0]}?" if alike else ", so it has no effect")
