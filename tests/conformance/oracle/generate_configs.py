"""Generates questions about validation: connector configs with missing, invalid and additional options."""

from __future__ import annotations

from random import Random
from typing import Any

from conformance.oracle import generate_data as data
from conformance.oracle.generate_data import maybe

Json = Any

_FILE = "org.apache.kafka.connect.file."
_TRANSFORMS = "org.apache.kafka.connect.transforms."
_JSON = "org.apache.kafka.connect.json.JsonConverter"
_GARBAGE = [
    "",
    " ",
    "x",
    "0",
    "-1",
    "1.5",
    "99999999999999999999",
    "true",
    "TRUE",
    "yes",
    "a,b",
    "a,a",
    "a,,b",
    " a ",
    "none",
    "all",
    "NONE",
    "[",
    "é",
    "a\tb",
]
_CONVERTERS = [
    "Json",
    "JsonConverter",
    _JSON,
    "String",
    "org.apache.kafka.connect.storage.StringConverter",
    "no.such",
    "ByteArrayConverter",
    "LongConverter",
    "",
    "org.apache.kafka.connect.converters.IntegerConverter",
    "org.apache.kafka.connect.storage.SimpleHeaderConverter",
    "Double",
    "Boolean",
]

_COMMON: dict[str, list[str]] = {
    "tasks.max": ["1", "3", " 2 ", "2147483648"],
    "tasks.max.enforce": ["true", "false"],
    "config.action.reload": ["none", "restart", "RESTART"],
    "errors.retry.timeout": ["-1", "1000"],
    "errors.retry.delay.max.ms": ["1", "60000"],
    "errors.tolerance": ["none", "all", "ALL"],
    "errors.log.enable": ["true", "False"],
    "errors.log.include.messages": ["true"],
    "key.converter": _CONVERTERS,
    "value.converter": _CONVERTERS,
    "header.converter": _CONVERTERS,
    "key.converter.plugin.version": ["4.3.0", "[4.3.0]", "[4,5)", "9.9", "latest"],
    "value.converter.plugin.version": ["4.3.0", "(,4.3.0]", "1.0"],
    "header.converter.plugin.version": ["4.3.0", "x"],
    "connector.plugin.version": ["4.3.0", "[4.0,)", "3.0", "(,1.0]", "4.3"],
    "key.converter.schemas.enable": ["true", "x"],
    "value.converter.schemas.enable": ["false"],
    "value.converter.schemas.cache.size": ["10", "-1"],
    "value.converter.decimal.format": ["NUMERIC", "base64"],
    "value.converter.converter.type": ["key", "value"],
    "unknown.option": ["x"],
    "producer.override.acks": ["all", "1", "7"],
    "producer.override.linger.ms": ["5", "-1"],
    "producer.override.nonsense": ["1"],
    "producer.override.max.block.ms": ["x", "1"],
    "consumer.override.max.poll.records": ["10", "0"],
    "consumer.override.auto.offset.reset": ["latest", "never", "by_duration:PT1H"],
    "consumer.override.isolation.level": ["read_committed", "x"],
    "consumer.override.fetch.min.bytes": ["1", "-5"],
    "admin.override.request.timeout.ms": ["1", "-1"],
    "admin.override.bootstrap.servers": ["localhost:1", "x"],
}
_SOURCE: dict[str, list[str]] = {
    "topic": ["t", "", "a,b"],
    "file": ["in.txt", ""],
    "batch.size": ["1", "2000", "0"],
    "topic.creation.groups": ["g", "g,h", "g,g", "default", ""],
    "topic.creation.default.replication.factor": ["1", "-1", "0", "-2", "32768"],
    "topic.creation.default.partitions": ["1", "-1", "0"],
    "topic.creation.default.include": ["a.*"],
    "topic.creation.default.exclude": ["b.*"],
    "topic.creation.default.cleanup.policy": ["compact"],
    "topic.creation.g.replication.factor": ["3", "0"],
    "topic.creation.g.partitions": ["5", "0"],
    "topic.creation.g.include": ["a.*", "["],
    "topic.creation.g.exclude": ["b", "["],
    "topic.creation.h.include": ["h"],
    "exactly.once.support": ["requested", "required", "REQUIRED"],
    "transaction.boundary": ["poll", "interval", "connector", "INTERVAL"],
    "transaction.boundary.interval.ms": ["1", "0", "60000"],
    "offsets.storage.topic": ["offs", "", " "],
}
_SINK: dict[str, list[str]] = {
    "topics": ["a", "a,b", "a,,b", " a , b ", "a,a", ""],
    "topics.regex": ["a.*", "[", ""],
    "file": ["out.txt"],
    "errors.deadletterqueue.topic.name": ["dlq", "a", ""],
    "errors.deadletterqueue.topic.replication.factor": ["1", "0", "-1", "32768"],
    "errors.deadletterqueue.context.headers.enable": ["true", "x"],
}
_STAGES = [
    {"type": _TRANSFORMS + "Cast$Value", "spec": "a:int8"},
    {"type": _TRANSFORMS + "Cast$Value", "spec": "x:y:z"},
    {"type": _TRANSFORMS + "Cast"},
    {"type": "Filter"},
    {"type": "RegexRouter", "regex": "(", "replacement": "x"},
    {"type": "org.apache.kafka.connect.transforms.RegexRouter", "regex": "a"},
    {"type": _TRANSFORMS + "MaskField$Value", "fields": "a,a"},
    {"type": _TRANSFORMS + "MaskField$Key", "fields": "", "replacement": ""},
    {"type": _TRANSFORMS + "InsertField$Value", "topic.field": "t"},
    {"type": _TRANSFORMS + "ReplaceField$Value", "renames": "a"},
    {"type": _TRANSFORMS + "TimestampConverter$Value", "target.type": "x", "unix.precision": "y"},
    {"type": _TRANSFORMS + "TimestampRouter"},
    {"type": _TRANSFORMS + "HoistField$Value"},
    {"type": _TRANSFORMS + "ExtractField$Key", "field": "a", "field.syntax.version": "V3"},
    {"type": _TRANSFORMS + "Flatten$Value", "delimiter": ""},
    {"type": _TRANSFORMS + "HeaderFrom$Value", "fields": "a", "headers": "", "operation": "x"},
    {"type": _TRANSFORMS + "InsertHeader", "header": "", "value.literal": "1"},
    {"type": "DropHeaders", "headers": "a,"},
    {"type": _TRANSFORMS + "SetSchemaMetadata$Value", "schema.version": "x"},
    {"type": _TRANSFORMS + "ValueToKey", "fields": "a"},
    {"type": "no.such.Transform"},
    {"type": _JSON},
    {},
]
_CONDITIONS = [
    {"type": _TRANSFORMS + "predicates.TopicNameMatches", "pattern": "("},
    {"type": "TopicNameMatches", "pattern": "a.*"},
    {"type": "RecordIsTombstone"},
    {"type": _TRANSFORMS + "predicates.HasHeaderKey", "name": ""},
    {"type": "HasHeaderKey"},
    {"type": "no.such.Predicate"},
    {"type": _TRANSFORMS + "Filter"},
    {},
]


def question(random: Random, _public: list[Json]) -> Json:
    """Return a new question about validation, or about a plugin's options."""
    if maybe(random, 0.1):
        plugin = random.choice([*_CONVERTERS, *(str(each.get("type", "")) for each in (*_STAGES, *_CONDITIONS))])
        return {"kind": "configdef", "category": "Generated.pluginconfig", "op": "plugin_config", "plugin": plugin}
    source = maybe(random, 0.5)
    config: dict[str, str | None] = {"name": "con"}
    config["connector.class"] = random.choice(
        ["FileStreamSource", _FILE + "FileStreamSourceConnector"] if source else ["FileStreamSink", "FileStreamSinkConnector"]
    )
    config |= {"topic": "t"} if source else {"topics": "a,b"}
    options = {**_COMMON, **(_SOURCE if source else _SINK)}
    for name in random.sample(list(options), random.choice([0, 1, 1, 2, 2, 3, 4])):
        config[name] = random.choice(options[name] if maybe(random, 0.7) else _GARBAGE)
    if maybe(random, 0.1):
        config.pop(random.choice(list(config)))
    if maybe(random, 0.08):
        config[random.choice(list(config))] = random.choice([None, *_GARBAGE])
    if maybe(random, 0.05):
        config["name"] = random.choice(["", " ", "a/b", "a\nb", "a\u0007", "é", None, "a" * 30])
    if maybe(random, 0.3):
        config |= _chain(random)
    return {
        "kind": "configdef",
        "category": "Generated.configdef",
        "op": "validate",
        "form": random.choice(["values", "values", "values", "full"]),
        "config": config,
    }


def _chain(random: Random) -> dict[str, str | None]:
    config: dict[str, str | None] = {}
    aliases = random.sample(["a", "b", "c", "x.y"], random.choice([1, 1, 2]))
    conditions = random.sample(["p", "q"], random.choice([0, 0, 1, 2]))
    config["transforms"] = ",".join(aliases) + random.choice([""] * 8 + [",", ",a", " , z"])
    if conditions:
        config["predicates"] = ",".join(conditions)
    for alias in aliases:
        stage = dict(random.choice(_STAGES))
        if maybe(random, 0.3):
            stage["predicate"] = random.choice(["p", "q", ""])
        if maybe(random, 0.2):
            stage["negate"] = random.choice(["true", "x", "false"])
        if maybe(random, 0.15):
            stage["plugin.version"] = random.choice(["4.3.0", "9.9", "[4,5)", "["])
        if maybe(random, 0.15) and stage:
            stage[random.choice(list(stage))] = random.choice([*_GARBAGE, data.text(random)])
        config |= {f"transforms.{alias}.{name}": option for name, option in stage.items()}
    for alias in conditions:
        config |= {f"predicates.{alias}.{name}": option for name, option in random.choice(_CONDITIONS).items()}
    return config
