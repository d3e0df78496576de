"""Formats the errors and warnings of a config validation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sluiceway.cli.advice import with_worker_key
from sluiceway.cli.common import naming_refused, say
from sluiceway.cli.secrets import DeclaredPasswords, shown
from sluiceway.config.connector import APPLICATION
from sluiceway.config.plugin_keys import IN_JAVA
from sluiceway.config.similar_classes import with_similar_classes
from sluiceway.config.unknown_keys import unknown_keys
from sluiceway.errors import ConfigError

if TYPE_CHECKING:
    from sluiceway.rest.client import ConnectClient

_CLASS = "connector.class"
_VERSION = "connector.plugin.version"


@dataclass(frozen=True)
class Finding:
    """An error or warning about one key."""

    key: str
    value: str | None
    text: str


@dataclass(frozen=True)
class Findings:
    """The errors of a connector's config, and warnings about keys that nothing defines."""

    name: str
    errors: list[Finding]
    warnings: list[Finding]
    application: str | None = None
    """The Spark application that will run the connector, and why, if the server says so."""
    note: str | None = None
    """A note that names the class that the server uses if there are two, and how to use the other one."""

    def lines(self) -> Iterator[str]:
        """Yield a summary line, then two lines for each finding."""
        if not self.errors and not self.warnings:
            yield f"{self.name}: valid"
        else:
            yield f"{self.name}: {len(self.errors)} error(s), {len(self.warnings)} warning(s)"
        yield from self.finding_lines()
        if self.application is not None:
            yield f"  Spark application: {self.application}"

    def finding_lines(self) -> Iterator[str]:
        """Yield two lines for each finding, and the note."""
        for kind, found in (("error", self.errors), ("warning", self.warnings)):
            for each in found:
                value = "" if each.value is None else f" = {each.value}"
                yield f"  {kind:<7}  {each.key}{value}"
                yield f"           {each.text}"
        if self.note is not None:
            yield f"  note     {self.note}"

    def to_json(self) -> dict[str, Any]:
        def documents(found: list[Finding]) -> list[dict[str, str | None]]:
            return [{"key": each.key, "value": each.value, "message": each.text} for each in found]

        found = {"name": self.name, "errors": documents(self.errors), "warnings": documents(self.warnings)}
        more = {"application": self.application, "note": self.note}
        return found | {key: value for key, value in more.items() if value is not None}


def checked(api: ConnectClient, name: str, config: Mapping[str, str], *, reads_others: bool = False) -> Findings:
    """Validate a config on the server. Raises RestError, and ConfigError if the config has no ``connector.class``.

    ``reads_others`` as in ``unknown_keys``; also if the server says that it uses a Java plugin.
    """
    if not config.get(_CLASS):
        raise ConfigError(f"Connector {name} has no {_CLASS}. Add it to the config.")
    with naming_refused(name):
        answer = api.validate(config[_CLASS], config)
    used = _used(api, config[_CLASS], config.get(_VERSION))
    reads_others = reads_others or used.get("language") == IN_JAVA
    found = findings(name, config, answer, reads_others=reads_others)
    if found.warnings:  # an older Kafka Connect does not validate the keys of converters, but says which are passwords
        found = findings(name, config, answer, DeclaredPasswords(api).keys(config), reads_others=reads_others)
    return replace(found, note=used.get("note"))


def findings(
    name: str,
    config: Mapping[str, str],
    answer: Mapping[str, Any],
    passwords: Collection[str] = (),
    *,
    reads_others: bool = False,
) -> Findings:
    """Return the findings in the server's response to a validation, with secrets masked. No I/O.

    ``passwords`` are the keys of type password besides those in the response, ``reads_others`` as in ``unknown_keys``.
    """
    definitions = [each["definition"] for each in answer["configs"] if each["definition"]]  # null for an undefined key
    secret = {*passwords, *(each["name"] for each in definitions if each.get("type") == "PASSWORD")}

    def shown_value(key: str) -> str | None:
        value = config.get(key)
        return None if value is None else shown(key, value, secret)

    errors = [
        Finding(each["value"]["name"], shown_value(each["value"]["name"]), " ".join(_with_meant(text, each["value"]).split()))
        for each in answer["configs"]
        for text in each["value"]["errors"]
    ]
    wrong = {each.key for each in errors}
    unknown = unknown_keys(config, {each["name"] for each in definitions}, reads_others=reads_others)
    warnings = [Finding(key, shown_value(key), _unknown(similar)) for key, similar in unknown.items() if key not in wrong]
    return Findings(name, errors, warnings, _application(answer))


def print_unread_keys(api: ConnectClient, name: str, config: Mapping[str, str], changed: Iterable[str]) -> None:
    """Print the changed keys of a config that nothing reads. A config that cannot be validated is refused when it is stored."""
    from sluiceway.rest.client import RestError

    try:
        found = checked(api, name, config)
    except RestError:
        return
    keys = set(changed)
    for line in replace(found, errors=[], warnings=[each for each in found.warnings if each.key in keys]).finding_lines():
        say(line)


def note_on_class(api: ConnectClient, name: str) -> str | None:
    """Return which of two classes the server uses, and how to use the other one. A Kafka Connect worker has no two."""
    return _used(api, name).get("note")


def _used(api: ConnectClient, name: str, version: str | None = None) -> dict[str, Any]:
    """Return what the server says of the class that it uses; nothing if it is Kafka Connect, whose classes are in Java."""
    from sluiceway.rest.client import RestError

    try:
        return api.plugin_implementation(name, version)
    except RestError:
        return {}


def _application(answer: Mapping[str, Any]) -> str | None:
    definitions = (each["definition"] for each in answer["configs"] if each["definition"])
    documentation = (each["documentation"] for each in definitions if each["name"] == APPLICATION)
    return next((text.rpartition(" Here: ")[2] for text in documentation if " Here: " in text), None)


def _with_meant(error: str, value: Mapping[str, Any]) -> str:
    """Return a key's error with the class that a misspelled one may mean, of those that the server recommends."""
    return with_worker_key(with_similar_classes(error, lambda _type: value.get("recommended_values") or ()))


def _unknown(similar: str | None) -> str:
    return "unknown key" + (f"; did you mean {similar}?" if similar else ": it has no effect")
