"""Runs Java connectors, and asks their classes for definitions and validation, in the Java process of the calling thread."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from sluiceway.api import (
    Connector,
    ConnectorTransactionBoundaries,
    ExactlyOnceSupport,
    Offset,
    Partition,
    SinkConnector,
    SourceConnector,
    TopicPartition,
)
from sluiceway.config.definition import NO_DEFAULT, ConfigDef, ConfigKey, ConfigValue, Importance, Type, ValidatedValue, Width
from sluiceway.config.parsing import parse_value
from sluiceway.errors import ConfigError, ConnectError
from sluiceway.java_plugins.errors import java_error
from sluiceway.java_plugins.host import JavaObject
from sluiceway.java_plugins.hosts import HostSlot, PluginLocation, call_new, current_slot, reference


class JavaConnector(Connector):
    """A connector whose class is Java. Each plugin has a subclass of this class, with its ``plugin``."""

    plugin: ClassVar[PluginLocation]
    plugin_version: ClassVar[str] = "undefined"

    _slot: HostSlot | None = None
    _object: JavaObject | None = None

    @classmethod
    def version(cls) -> str:
        return cls.plugin_version

    @classmethod
    def config_def(cls) -> ConfigDef:
        return config_def(_ask(cls.plugin, "config"))

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        definition = cls.config_def()
        return {each["name"]: _validated(definition, each) for each in _ask(cls.plugin, "validate", {"config": dict(config)})}

    def start(self, config: Mapping[str, str]) -> None:
        self._slot = current_slot()
        host = self._slot.host()
        host.on_death = self.context.raise_error
        arguments = {"plugin": reference(self.plugin)}
        self._object = host.new("connector", arguments, context=self._slot.context, handler=self._serve)
        self.java_task_class = self._object.call("start", {"config": dict(config)})  # it may depend on the config

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        if self._object is None:
            raise ConnectError("The connector is not started.")
        configs: list[Mapping[str, str]] = self._object.call("taskConfigs", {"max": max_tasks})
        return configs

    def stop(self) -> None:
        if self._object is not None and self._object.host.alive:
            self._object.call("stop")

    def abandon(self) -> None:
        """End the connector's Java process, whatever it is doing. Called on any thread."""
        if self._slot is not None:
            self._slot.close()

    def _serve(self, method: str, args: Any) -> object:
        if method == "requestTaskReconfiguration":
            self.context.request_task_reconfiguration()
            return None
        if method == "raiseError":
            self.context.raise_error(java_error(args))
            return None
        reader = getattr(self.context, "offset_storage_reader", None)
        if method == "offsets" and reader is not None:
            return stored_offsets(reader.offsets, args)
        raise ConnectError(f"Sluiceway does not serve {method} to connectors.")


class JavaSourceConnector(JavaConnector, SourceConnector):
    """A Java source connector."""

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        answer = _ask(self.plugin, "exactlyOnceSupport", {"config": dict(config)})
        return ExactlyOnceSupport(answer) if answer else ExactlyOnceSupport.UNSUPPORTED

    def can_define_transaction_boundaries(self, config: Mapping[str, str]) -> ConnectorTransactionBoundaries:
        answer = _ask(self.plugin, "canDefineTransactionBoundaries", {"config": dict(config)})
        return ConnectorTransactionBoundaries(answer) if answer else ConnectorTransactionBoundaries.UNSUPPORTED

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]) -> bool:
        texts = [
            [json.dumps(dict(partition)), None if offset is None else json.dumps(dict(offset))] for partition, offset in offsets
        ]
        return bool(_ask(self.plugin, "alterOffsets", {"config": dict(config), "offsets": texts}))


class JavaSinkConnector(JavaConnector, SinkConnector):
    """A Java sink connector."""

    def alter_offsets(self, config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]) -> bool:
        positions = [[topic, partition, offset] for (topic, partition), offset in offsets.items()]
        return bool(_ask(self.plugin, "alterOffsets", {"config": dict(config), "offsets": positions}))


def config_def(keys: Sequence[Mapping[str, Any]]) -> ConfigDef:
    """Return a definition as the Java side describes it. Validators and recommenders stay in Java."""
    return ConfigDef(
        ConfigKey(
            name=key["name"],
            type=Type(key["type"]),
            default=NO_DEFAULT if key["required"] else key["default"],
            importance=Importance(key["importance"]),
            doc=key["doc"] or "",
            group=key["group"],
            order_in_group=key["order"],
            width=Width(key["width"]),
            display_name=key["display_name"],
            dependents=tuple(key["dependents"]),
            internal=key["internal"],
        )
        for key in keys
    )


def stored_offsets(read: Any, partitions: Sequence[str]) -> list[str | None]:
    """Return stored offsets as JSON texts; ``read`` is ``OffsetStorageReader.offsets``, partitions are JSON texts."""
    found = read([json.loads(text) for text in partitions])
    return [None if offset is None else json.dumps(dict(offset)) for offset in found]


def _validated(definition: ConfigDef, described: Mapping[str, Any]) -> ValidatedValue:
    name = described["name"]
    kind = definition[name].type if name in definition else Type.STRING
    recommended = [parsed_or_text(name, text, Type.STRING if kind is Type.LIST else kind) for text in described["recommended"]]
    value = parsed_or_text(name, described["value"], kind)
    return ValidatedValue(name, value, recommended, list(described["errors"]), described["visible"])


def parsed_or_text(name: str, text: str | None, kind: Type) -> ConfigValue:
    """Return a value with its type, as text if it does not have the type."""
    try:
        return parse_value(name, text, kind)
    except ConfigError:
        return text


def _ask(plugin: PluginLocation, method: str, args: object = None) -> Any:
    """Call a method of a connector that is not started, in the current Java process."""
    return call_new("connector", {"plugin": reference(plugin)}, plugin, method, args)
