"""Worker files that differ, and the connectors that this concerns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from sluiceway.cli.migration_workers import differences

JSON, STRING = "org.apache.kafka.connect.json.JsonConverter", "org.apache.kafka.connect.storage.StringConverter"
ENV = {"config.providers": "env", "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider"}


def infos(**more: str) -> dict[str, Mapping[str, Any]]:
    return {kind: {"type": kind, "config": more} for kind in ("source", "sink")}


def keys(there: Mapping[str, str], here: Mapping[str, str], **config: str) -> dict[str, tuple[tuple[str, ...], bool]]:
    """Return what differs for a source and a sink: the connectors by key, and whether their bytes change."""
    return {each.key: (each.connectors, each.bytes) for each in differences(there, here, infos(**config))}


BOTH = ("source", "sink")


@pytest.mark.parametrize(
    ("there", "here", "config", "expected"),
    [
        # Converters: other bytes, for those that take them from the worker.
        ({"value.converter": STRING}, {"value.converter": JSON}, {}, {"value.converter": (BOTH, True)}),
        ({"value.converter": STRING}, {"value.converter": "StringConverter"}, {}, {}),
        ({"value.converter": STRING}, {"value.converter": JSON}, {"value.converter": STRING}, {}),
        ({"key.converter": JSON}, {}, {}, {"key.converter": (BOTH, True)}),
        ({}, {"header.converter": STRING}, {}, {"header.converter": (BOTH, True)}),
        ({}, {"header.converter": "SimpleHeaderConverter"}, {}, {}),
        # Their settings, with their defaults.
        (
            {"value.converter": JSON, "value.converter.schemas.enable": "false"},
            {"value.converter": JSON},
            {},
            {"value.converter.schemas.enable": (BOTH, True)},
        ),
        ({"value.converter": JSON, "value.converter.schemas.enable": "TRUE"}, {"value.converter": JSON}, {}, {}),
        ({"value.converter": STRING, "value.converter.schemas.enable": "false"}, {"value.converter": STRING}, {}, {}),
        (
            {"value.converter": "a.b.AvroConverter", "value.converter.schema.registry.url": "http://a"},
            {"value.converter": "a.b.AvroConverter", "value.converter.schema.registry.url": "http://b"},
            {},
            {"value.converter.schema.registry.url": (BOTH, True)},
        ),
        # Providers, for those that refer to them.
        (ENV, {}, {"file": "${env:X}"}, {"config.providers": (BOTH, False), "config.providers.env.class": (BOTH, False)}),
        (ENV, {}, {"file": "x"}, {}),
        (ENV, {**ENV, "config.providers.env.class": "EnvVarConfigProvider"}, {"file": "${env:X}"}, {}),
        (
            {**ENV, "config.providers.env.param.allowlist.pattern": "A.*"},
            ENV,
            {"file": "${env:X}"},
            {"config.providers.env.param.allowlist.pattern": (BOTH, False)},
        ),
        # Delivery.
        ({"exactly.once.source.support": "enabled"}, {}, {}, {"exactly.once.source.support": (("source",), False)}),
        ({"exactly.once.source.support": "disabled"}, {}, {}, {}),
        ({"offset.flush.interval.ms": "1000"}, {}, {}, {"offset.flush.interval.ms": (BOTH, False)}),
        ({"topic.creation.enable": "false"}, {}, {}, {"topic.creation.enable": (("source",), False)}),
        (
            {"connector.client.config.override.policy": "None"},
            {},
            {},
            {"connector.client.config.override.policy": (BOTH, False)},
        ),
        ({"connector.client.config.override.policy": "All"}, {}, {}, {}),
        # Clients, for the kind of connector that has them, unless its config overrides the setting.
        ({"consumer.isolation.level": "read_committed"}, {}, {}, {"consumer.isolation.level": (("sink",), False)}),
        ({"consumer.isolation.level": "read_uncommitted"}, {}, {}, {}),
        ({"consumer.max.poll.records": "5"}, {}, {"consumer.override.max.poll.records": "7"}, {}),
        ({"producer.compression.type": "lz4"}, {}, {}, {"producer.compression.type": (("source",), False)}),
        ({"producer.sasl.jaas.config": "x", "producer.security.protocol": "SASL_SSL"}, {}, {}, {}),
        # What is each cluster's own.
        ({"group.id": "a", "bootstrap.servers": "b", "plugin.path": "/p", "config.storage.topic": "c"}, {}, {}, {}),
    ],
)
def test_settings_that_a_connector_takes_from_its_worker_are_compared(
    there: dict[str, str], here: dict[str, str], config: dict[str, str], expected: dict[str, tuple[tuple[str, ...], bool]]
) -> None:
    assert keys(there, here, **config) == expected
    assert keys(here, there, **config) == expected, "the other way"


def test_a_difference_names_both_values_and_hides_secrets() -> None:
    there = {"value.converter": STRING, "value.converter.password": "hunter2"}
    first, second = differences(there, {"value.converter": JSON}, infos())
    assert first.text() == (
        f"  differs  value.converter: {STRING} at the source, {JSON} at the target. Concerns source, sink: other bytes. Set it "
        "in the target's worker file or in the connectors' configs, or accept it with --accept value.converter"
    )
    assert "[hidden] at the source, not set at the target" in second.text()
    assert first.to_json() == {
        "key": "value.converter",
        "source": STRING,
        "target": JSON,
        "connectors": ["source", "sink"],
        "changes_bytes": True,
    }
