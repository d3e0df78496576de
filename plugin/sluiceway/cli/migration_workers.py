"""Compares the worker files of two Connect clusters, as far as they change what a connector does that moves. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sluiceway.config.masking import shown
from sluiceway.config.parsing import parse_list
from sluiceway.config.plugin_keys import CONVERTERS
from sluiceway.config.variables import PROVIDERS, references

Properties = Mapping[str, str]

_SINK, _SOURCE = ("sink",), ("source",)
_BOTH = ("sink", "source")
_DEFAULTS = {
    "header.converter": "org.apache.kafka.connect.storage.SimpleHeaderConverter",
    "connector.client.config.override.policy": "All",
    "exactly.once.source.support": "disabled",
    "offset.flush.interval.ms": "60000",
    "offset.flush.timeout.ms": "5000",
    "topic.creation.enable": "true",
    "isolation.level": "read_uncommitted",
    "schemas.enable": "true",
}
"""Of the whole key, or of its last part in the settings of a converter or a client."""
_DELIVERY = {
    "exactly.once.source.support": _SOURCE,
    "offset.flush.interval.ms": _BOTH,
    "offset.flush.timeout.ms": _BOTH,
    "topic.creation.enable": _SOURCE,
    "connector.client.config.override.policy": _BOTH,
}
_CLIENTS = {"producer.": _SOURCE, "consumer.": _SINK, "admin.": _BOTH}
# Where a cluster's workers connect, and as whom, does not change what a connector does.
_CONNECTION = ("bootstrap.", "client.id", "sasl.", "security.", "ssl.")


@dataclass(frozen=True)
class Difference:
    """A setting that is not the same in both worker files, and the connectors that it concerns.

    Attributes:
        there: the value in the source's worker file, or its default; None for neither. Secrets are hidden.
        here: the same of the target.
        bytes: whether the connectors would write or read other bytes, so that a move must accept the difference by name.
    """

    key: str
    there: str | None
    here: str | None
    connectors: tuple[str, ...]
    bytes: bool

    def text(self) -> str:
        names = ", ".join(self.connectors)
        what = f"  differs  {self.key}: {_said(self.there)} at the source, {_said(self.here)} at the target. Concerns {names}"
        if not self.bytes:
            return what
        return (
            f"{what}: other bytes. Set it in the target's worker file or in the connectors' configs, or accept it with "
            f"--accept {self.key}"
        )

    def to_json(self) -> dict[str, Any]:
        found = {"key": self.key, "source": self.there, "target": self.here}
        return {**found, "connectors": list(self.connectors), "changes_bytes": self.bytes}


def differences(
    there: Properties, here: Properties, connectors: Mapping[str, Mapping[str, Any]], passwords: Collection[str] = ()
) -> list[Difference]:
    """Return how two worker files differ for these connectors.

    Args:
        there, here: the worker files of the source and the target.
        connectors: entries of ``GET /connectors?expand=info``, by name.
        passwords: keys of type password besides those that are known by their names.
    """
    found: dict[str, list[str]] = {}
    for name, info in connectors.items():
        for key in _keys(there, here, info):
            if not _same(key, there, here):
                found.setdefault(key, []).append(name)

    def value(key: str, properties: Properties) -> str | None:
        given = _value(key, properties)
        return None if given is None else shown(key, given, passwords)

    return [
        Difference(key, value(key, there), value(key, here), tuple(names), key.startswith(CONVERTERS))
        for key, names in sorted(found.items())
    ]


def _keys(there: Properties, here: Properties, info: Mapping[str, Any]) -> Iterator[str]:
    """Yield the keys of worker files that a connector depends on: what its own config does not set."""
    config, kind = info["config"], info.get("type") or ""
    keys = {*there, *here}
    for converter in CONVERTERS:
        if not config.get(converter):
            yield converter
            classes = {_simple(_value(converter, each)) for each in (there, here)}
            yield from (key for key in keys if key.startswith(f"{converter}.") and _reads(classes, key))
    for provider in {each.provider for each in references(config)}:
        own = f"{PROVIDERS}.{provider}."
        yield from (key for key in keys if key.startswith(own))
        if (provider in parse_list(there.get(PROVIDERS))) != (provider in parse_list(here.get(PROVIDERS))):
            yield PROVIDERS
    yield from (key for key, kinds in _DELIVERY.items() if kind in kinds)
    for prefix, kinds in _CLIENTS.items():
        if kind in kinds:
            yield from (key for key in keys if key.startswith(prefix) and _matters(key.removeprefix(prefix), prefix, config))


def _reads(converters: Collection[str], key: str) -> bool:
    """Return whether one of these converters reads a setting. Worker files often set those of JsonConverter for another one."""
    return not key.endswith(".schemas.enable") or "Json" in converters


def _matters(setting: str, prefix: str, config: Properties) -> bool:
    return f"{prefix}override.{setting}" not in config and not setting.startswith(_CONNECTION)


def _same(key: str, there: Properties, here: Properties) -> bool:
    if key in CONVERTERS or key.endswith((".class", ".policy")):
        return _simple(_value(key, there)) == _simple(_value(key, here))
    values = [(_value(key, each) or "").strip() for each in (there, here)]
    if all(value.lower() in ("true", "false") for value in values):
        values = [value.lower() for value in values]
    return values[0] == values[1]


def _value(key: str, properties: Properties) -> str | None:
    return properties.get(key) or _DEFAULTS.get(key) or _DEFAULTS.get(key.partition("converter.")[2] or key.partition(".")[2])


def _simple(name: str | None) -> str:
    """Return what a class's full name and its aliases have in common."""
    simple = (name or "").strip().rpartition(".")[2]
    for suffix in ("HeaderConverter", "Converter", "ConfigProvider", "ConnectorClientConfigOverridePolicy"):
        simple = simple.removesuffix(suffix) or simple
    return simple


def _said(value: str | None) -> str:
    return "not set" if value is None else value
