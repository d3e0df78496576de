"""Validation of connector configs, with the errors recorded from Kafka Connect 4.3.0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from sluiceway.api import SourceConnector
from sluiceway.config.connector import CONNECTOR
from sluiceway.config.definition import ConfigDef, ConfigKey, Type
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import BadRequestError, ConfigError, InvalidConfigError, NotFoundError
from sluiceway.herder.config_infos import ConfigInfo
from sluiceway.herder.validation import checked, named, plugin_config, trimmed, validate_config

WORKER = WorkerConfig.of({})
SOURCE = {"name": "s", "connector.class": "FileStreamSource", "topic": "t"}
SINK = {"name": "k", "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector", "topics": "a,b"}
CONTROL_CHARACTER = (
    "Invalid value a\tb for configuration name: String may not contain control sequences but had the following ASCII chars: 9"
)
ABSTRACT = (
    "This class is abstract and cannot be created. Did you mean org.apache.kafka.connect.transforms.HoistField$Key, "
    "org.apache.kafka.connect.transforms.HoistField$Value?"
)
NEGATE_ALONE = (
    "Config 'transforms.a.negate' was provided but there is no config 'transforms.a.predicate' "
    "defining a predicate to be negated."
)
ONE_OF_TOPICS = "Must configure one of topics or topics.regex"


class SecretSource(SourceConnector):
    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(
            [ConfigKey(name="password", type=Type.PASSWORD, validator=_refuse), ConfigKey(name="port", type=Type.INT, default=1)]
        )

    def start(self, config: Mapping[str, str]) -> None: ...

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return []


class ThoroughSource(SecretSource):
    """Defines some of Connect's own keys again."""

    @classmethod
    def config_def(cls) -> ConfigDef:
        return CONNECTOR


def _refuse(name: str, value: Any) -> None:
    raise ConfigError(name, value, "too short")


def value(configs: tuple[ConfigInfo, ...], name: str) -> str | None:
    (found,) = (info.value for info in configs if info.value is not None and info.value.name == name)
    return found.value


def findings(config: Mapping[str, str]) -> list[str]:
    with pytest.raises(InvalidConfigError) as caught:
        checked(config, WORKER)
    return list(caught.value.errors)


@pytest.mark.parametrize(
    "config",
    [
        SOURCE,
        SINK,
        SOURCE | {"connector.class": "FileStreamSourceConnector"},
        SOURCE | {"tasks.max": " 3 ", "key.converter": "org.apache.kafka.connect.storage.StringConverter"},
        SOURCE | {"transforms": "", "predicates": ""},
        SINK | {"topics": " a , b "},
        {key: SINK[key] for key in ("name", "connector.class")} | {"topics.regex": "a.*"},
        SINK | {"airflow.mode": "micro-batch", "airflow.schedule": "@daily", "spark.executor.cores": "2", "anything": "else"},
    ],
)
def test_a_valid_config_has_no_errors(config: dict[str, str]) -> None:
    checked(config, WORKER)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"tasks.max": "0"}, ["Invalid value 0 for configuration tasks.max: Value must be at least 1"]),
        (
            {"tasks.max": "x"},
            [
                "Invalid value x for configuration tasks.max: Not a number of type INT",
                "Invalid value null for configuration tasks.max: Value must be non-null",
            ],
        ),
        ({"errors.tolerance": "ALL"}, ["Invalid value ALL for configuration errors.tolerance: String must be one of: none, all"]),
        (
            {"config.action.reload": "NONE"},
            ["Invalid value NONE for configuration config.action.reload: String must be one of: none, restart"],
        ),
        (
            {"key.converter": "no.such"},
            ["Invalid value no.such for configuration key.converter: Class no.such could not be found."],
        ),
        ({"name": ""}, ["Invalid value  for configuration name: String may not be empty"]),
        (
            {"name": "a\tb"},
            [CONTROL_CHARACTER],
        ),
        (
            {"transforms": "a,b", "transforms.b.type": "org.example.Nope"},
            [
                'Missing required configuration "transforms.a.type" which has no default value.',
                "Invalid value org.example.Nope for configuration transforms.b.type: Class org.example.Nope could not be found.",
            ],
        ),
        ({"batch.size": "many"}, ["Invalid value many for configuration batch.size: Not a number of type INT"]),
    ],
)
def test_an_invalid_value_has_connects_error(change: dict[str, str], expected: list[str]) -> None:
    assert findings(SOURCE | change) == expected


def test_all_errors_are_reported_with_connects_own_keys_first() -> None:
    wrong = {key: value for key, value in SOURCE.items() if key != "topic"} | {"tasks.max": "0"}
    assert findings(wrong) == [
        "Invalid value 0 for configuration tasks.max: Value must be at least 1",
        'Missing required configuration "topic" which has no default value.',
    ]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"topics": ""}, [ONE_OF_TOPICS] * 2),
        ({"topics": "", "topics.regex": " "}, [ONE_OF_TOPICS] * 2),
        ({"topics.regex": "a.*"}, ["topics and topics.regex are mutually exclusive options, but both are set."] * 2),
        ({"topics": "a,,b"}, ["Configuration 'topics' values must not be empty."]),
        ({"topics": "a, a"}, ["Configuration 'topics' values must not be duplicated."]),
        (
            {"errors.deadletterqueue.topic.name": "b"},
            ["The DLQ topic 'b' may not be included in the list of topics ('topics=[a, b]') consumed by the connector"],
        ),
        (
            {"topics": "", "topics.regex": "d.*", "errors.deadletterqueue.topic.name": "dlq"},
            ["The DLQ topic 'dlq' may not be matched by the regex for the topics ('topics.regex=d.*') consumed by the connector"],
        ),
    ],
)
def test_a_sink_reads_topics_or_a_pattern_and_never_its_dead_letter_queue(change: dict[str, str], expected: list[str]) -> None:
    assert findings(SINK | change) == expected


def test_an_invalid_pattern_is_refused() -> None:
    (finding,) = findings(SINK | {"topics": "", "topics.regex": "["})
    assert finding.startswith("Invalid value [ for configuration topics.regex: Invalid regex: ")


def test_a_converters_keys_are_validated_with_its_prefix() -> None:
    options = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "maybe"}
    assert findings(SOURCE | options) == [
        "Invalid value maybe for configuration schemas.enable: Expected value to be either true or false"
    ]


def test_the_error_for_a_missing_class_hides_possible_secrets() -> None:
    with pytest.raises(BadRequestError) as caught:
        checked({"name": "s", "topic": "t", "db.pass": "hunter2"}, WORKER)
    # In the order of a HashMap.
    assert str(caught.value) == "Connector config {name=s, topic=t, db.pass=[hidden]} contains no connector type"


@pytest.mark.parametrize(
    "name", ["org.example.Nope", "", " FileStreamSource ", "sluiceway.converters.string_converter.StringConverter", "json.dumps"]
)
def test_a_class_that_is_not_a_connector_is_a_bad_request_that_lists_the_connectors(name: str) -> None:
    with pytest.raises(BadRequestError, match=r"Failed to find any class .* FileStreamSink, FileStreamSource"):
        checked({"name": "s", "connector.class": name}, WORKER)


def test_a_refused_secret_is_not_shown() -> None:
    config = {"name": "s", "connector.class": f"{__name__}.SecretSource", "password": "hunter2", "port": "x"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sluiceway.herder.validation.connector_class", lambda *_: SecretSource)
        text = "\n".join(findings(config))
    assert "Invalid value [hidden] for configuration password: too short" in text
    assert "Invalid value x for configuration port" in text
    assert "hunter2" not in text


def test_the_connectors_definition_of_a_key_wins_over_connects(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sluiceway.herder.validation.connector_class", lambda *_: ThoroughSource)
    found = validate_config({"name": "s", "connector.class": "x", "tasks.max": "0"}, WORKER)
    assert found.errors == ["Invalid value 0 for configuration tasks.max: Value must be at least 1"]
    (definition,) = (each.definition for each in found.configs if each.definition and each.definition.name == "key.converter")
    assert definition.default_value is None
    assert value(found.configs, "key.converter") is None  # not the worker's, since the connector's own has no default


def test_the_name_is_added_last_and_must_be_the_same_everywhere() -> None:
    assert list(named("s", {"topic": "t", "a": "b"})) == ["topic", "a", "name"]
    assert list(named("s", {"name": "s", "a": "b"})) == ["name", "a"]
    with pytest.raises(BadRequestError) as caught:
        named("s", {"name": "other"})
    assert str(caught.value) == "Connector name configuration (other) doesn't match connector name in the URL (s)"


def test_names_are_trimmed_as_java_trims() -> None:
    assert trimmed(" \x01 a b\t") == "a b"
    assert trimmed("\u00a0a") == "\u00a0a"
    assert trimmed(None) == ""


def names(config: Mapping[str, str | None]) -> list[str]:
    return [info.value.name for info in validate_config(config, WORKER).configs if info.value is not None]


def test_the_result_has_connects_keys_before_the_connectors() -> None:
    told = names(SINK)
    assert told[:5] == ["name", "connector.class", "connector.plugin.version", "tasks.max", "tasks.max.enforce"]
    assert told[-3:] == [
        "errors.deadletterqueue.topic.replication.factor",
        "errors.deadletterqueue.context.headers.enable",
        "file",
    ]
    assert validate_config(SINK, WORKER).groups == ("Common", "Transforms", "Predicates", "Error Handling")


def test_values_are_shown_as_parsed() -> None:
    config = SINK | {"topics": " a , b ", "tasks.max": " 3 ", "errors.log.enable": "TRUE", "key.converter": "String"}
    configs = validate_config(config, WORKER).configs
    shown = {name: value(configs, name) for name in ("topics", "tasks.max", "errors.log.enable", "key.converter")}
    assert shown == {
        "topics": "a,b",
        "tasks.max": "3",
        "errors.log.enable": "true",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    }


def test_the_workers_converters_are_the_defaults() -> None:
    worker = WorkerConfig.of({"value.converter": "org.apache.kafka.connect.storage.StringConverter"})
    configs = validate_config(SOURCE, worker).configs
    assert value(configs, "value.converter") == "org.apache.kafka.connect.storage.StringConverter"
    assert value(configs, "value.converter.plugin.version") == "4.3.0"
    assert "value.converter.converter.encoding" not in [info.value.name for info in configs if info.value]


def test_a_transforms_keys_are_in_their_own_group_with_required_ones_first() -> None:
    config = SOURCE | {"transforms": "a", "transforms.a.type": "org.apache.kafka.connect.transforms.HoistField$Value"}
    found = validate_config(config, WORKER)
    assert [name for name in names(config) if name.startswith("transforms.")] == [
        "transforms.a.type",
        "transforms.a.plugin.version",
        "transforms.a.field",
        "transforms.a.negate",
        "transforms.a.predicate",
    ]
    assert found.groups[-1] == "Transforms: a"
    assert found.errors == ['Missing required configuration "transforms.a.field" which has no default value.']


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"transforms": "a,a", "transforms.a.type": "Filter"},
            ["Invalid value [a, a] for configuration transforms: Duplicate alias provided."],
        ),
        ({"transforms": "a", "transforms.a.type": "org.apache.kafka.connect.transforms.HoistField"}, [ABSTRACT]),
        (
            {"transforms": "a", "transforms.a.type": "HoistField$Value", "transforms.a.field": "f"},
            ["Invalid value HoistField$Value for configuration transforms.a.type: Class HoistField$Value could not be found."],
        ),
        (
            {"transforms": "a", "transforms.a.type": "StringConverter"},
            ["Class class org.apache.kafka.connect.storage.StringConverter does not implement the Transformation interface"],
        ),
        ({"transforms": "a", "transforms.a.type": "Filter", "transforms.a.negate": "true"}, [NEGATE_ALONE]),
        (
            {"predicates": "p", "predicates.p.type": "Filter"},
            ["Class class org.apache.kafka.connect.transforms.Filter does not implement the Predicate interface"],
        ),
        ({"key.converter": "org.apache.kafka.connect.storage.Converter"}, ["This class is abstract and cannot be created."]),
        (
            {"key.converter": "SimpleHeaderConverter"},
            ["Class class org.apache.kafka.connect.storage.SimpleHeaderConverter does not implement the Converter interface"],
        ),
    ],
)
def test_an_unusable_plugin_has_connects_error(change: dict[str, str], expected: list[str]) -> None:
    assert findings(SOURCE | change) == expected


def test_a_version_that_is_not_installed_is_refused() -> None:
    wrong = (
        "Plugin org.apache.kafka.connect.storage.StringConverter not found that matches the version range [9.9,9.9], "
        "available versions: [4.3.0, 4.3.0]"
    )
    assert findings(SOURCE | {"key.converter": "String", "key.converter.plugin.version": "9.9"}) == [wrong] * 2
    with pytest.raises(BadRequestError, match=r"^Unbounded range: \[$"):
        checked(SOURCE | {"connector.plugin.version": "["}, WORKER)
    found = validate_config(SOURCE | {"connector.plugin.version": "(,1]"}, WORKER)
    assert found.error_count == 2
    assert "file" not in [info.value.name for info in found.configs if info.value]


def test_the_version_of_a_missing_class_is_not_validated() -> None:
    assert findings(SOURCE | {"transforms": "a", "transforms.a.plugin.version": "["}) == [
        'Missing required configuration "transforms.a.type" which has no default value.'
    ]
    change = {"transforms": "a", "transforms.a.plugin.version": "[", "transforms.a.type": "StringConverter"}
    assert findings(SOURCE | change) == ["Unbounded range: ["] * 2


def test_converters_are_validated_even_if_the_connectors_version_is_not_installed() -> None:
    found = validate_config(SOURCE | {"connector.plugin.version": "3.0", "key.converter": "Json", "value.converter": "x"}, WORKER)
    assert found.error_count == 3
    assert value(found.configs, "key.converter") == "org.apache.kafka.connect.json.JsonConverter"
    visible = {info.value.name: info.value.visible for info in found.configs if info.value}
    assert (visible["key.converter.plugin.version"], visible["value.converter.plugin.version"]) == (True, False)


def test_a_header_converters_alias_is_its_name_without_header_converter() -> None:
    assert validate_config(SOURCE | {"header.converter": "Simple"}, WORKER).error_count == 0
    assert len(findings(SOURCE | {"header.converter": "SimpleHeader"})) == 1


def test_null_values_are_errors() -> None:
    assert findings({**SOURCE, "tasks.max": None}) == [  # type: ignore[dict-item]
        "Invalid value null for configuration tasks.max: Value must be non-null",
        "Null value can not be supplied as the configuration value.",
    ]


def test_client_overrides_are_validated_for_the_clients_in_use() -> None:
    overrides = {"producer.override.linger.ms": " 5 ", "consumer.override.max.poll.records": "5", "admin.override.retries": "1"}
    assert [name for name in names(SOURCE | overrides) if ".override." in name] == ["producer.override.linger.ms"]
    assert [name for name in names(SINK | overrides) if ".override." in name] == ["consumer.override.max.poll.records"]
    both = {"errors.deadletterqueue.topic.name": "d"}
    assert len([name for name in names(SINK | overrides | both) if ".override." in name]) == 3
    with pytest.raises(ConfigError, match=r"^Invalid value x for configuration linger.ms: Not a number of type LONG$"):
        checked(SOURCE | {"producer.override.linger.ms": "x"}, WORKER)


def test_a_secret_override_is_hidden() -> None:
    found = validate_config(SOURCE | {"producer.override.ssl.key.password": "hunter2"}, WORKER)
    assert value(found.configs, "producer.override.ssl.key.password") == "[hidden]"


def test_sluiceways_own_keys_are_returned_and_validated_only_if_set() -> None:
    assert not [name for name in names(SOURCE) if name.startswith(("airflow.", "sluiceway.", "spark."))]
    assert findings(SOURCE | {"airflow.mode": "sometimes"}) == [
        "Invalid value sometimes for configuration airflow.mode: String must be one of: long-running, micro-batch"
    ]
    assert findings(SOURCE | {"airflow.schedule": "@daily"}) == [
        "Invalid value @daily for configuration airflow.schedule: only connectors with airflow.mode=micro-batch run by a schedule"
    ]
    (unknown,) = findings(SOURCE | {"airflow.schedul": "@daily"})
    assert unknown.startswith("Unknown configuration 'airflow.schedul'. Did you mean airflow.schedule? Known: airflow.mode, ")


def test_a_plugins_config_has_its_own_keys_before_connects() -> None:
    keys = plugin_config("FileStreamSink")
    assert [key.name for key in keys[:3]] == ["file", "name", "connector.class"]
    assert next((key.name, key.required) for key in plugin_config("StringConverter")) == ("converter.type", True)
    assert plugin_config("Filter") == []
    with pytest.raises(NotFoundError, match=r"^Unknown plugin nope\.$"):
        plugin_config("nope")


def test_a_sources_exactly_once_support_and_a_sinks_group_are_validated() -> None:
    worker = WorkerConfig.of({"group.id": "connect-k"})

    def errors(config: Mapping[str, str]) -> list[str]:
        return [error for info in validate_config(config, worker).configs if info.value for error in info.value.errors]

    assert errors({**SOURCE, "transaction.boundary": "connector"}) == [
        (
            "The connector does not support connector-defined transaction boundaries with the given configuration. "
            "Please reconfigure it to use a different transaction boundary definition."
        )
    ]
    assert errors({**SINK, "file": "/f"}) == [
        "Consumer group for sink connector named k conflicts with Connect worker group connect-k"
    ]


def test_validation_says_which_application_runs_the_connector_and_why() -> None:
    key = "sluiceway.application"
    shared = WorkerConfig.of({"sluiceway.application.default": "small"})

    def told(config: dict[str, str], worker: WorkerConfig = shared) -> list[str]:
        return [
            each.definition.documentation
            for each in validate_config(config, worker).configs
            if each.definition and each.definition.name == key
        ]

    assert told(SOURCE, WORKER) == [], "Connect has no such key"
    assert "Here: small, as the worker has sluiceway.application.default=small." in told(SOURCE)[0]
    assert "Here: none, as its config has spark.x." in told({**SOURCE, "spark.x": "1"})[0]
    assert "Here: other, as its config has" in told({**SOURCE, key: "other"}, WORKER)[0]
