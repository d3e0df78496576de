"""Which connector configs are refused, and with which words; Kafka Connect 4.3.0's, as recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from sluiceway.api import SourceConnector
from sluiceway.config.connector import CONNECTOR
from sluiceway.config.definition import ConfigDef, ConfigKey, Type
from sluiceway.errors import BadRequestError, ConfigError, InvalidConfigError
from sluiceway.herder.validation import check, named, problems, trimmed

SOURCE = {"name": "s", "connector.class": "FileStreamSource", "topic": "t"}
SINK = {"name": "k", "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector", "topics": "a,b"}
CONTROL_CHARACTER = (
    "Invalid value a\tb for configuration name: String may not contain control sequences but had the following ASCII chars: 9"
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
    """Declares Connect's own keys once more."""

    @classmethod
    def config_def(cls) -> ConfigDef:
        return CONNECTOR


def _refuse(name: str, value: Any) -> None:
    raise ConfigError(name, value, "too short")


def findings(config: Mapping[str, str]) -> list[str]:
    with pytest.raises(InvalidConfigError) as caught:
        check(config)
    return list(caught.value.errors)


@pytest.mark.parametrize(
    "config",
    [
        SOURCE,
        SINK,
        SOURCE | {"connector.class": " FileStreamSourceConnector "},
        SOURCE | {"tasks.max": " 3 ", "key.converter": "org.apache.kafka.connect.storage.StringConverter"},
        SOURCE | {"transforms": "", "predicates": ""},
        SINK | {"topics": " a , b "},
        {key: SINK[key] for key in ("name", "connector.class")} | {"topics.regex": "a.*"},
        SINK | {"airflow.schedule": "@daily", "spark.executor.cores": "2", "anything": "else"},
    ],
)
def test_a_config_in_order_is_taken(config: dict[str, str]) -> None:
    check(config)


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
)  # fmt: skip
def test_a_wrong_value_is_refused_in_connects_words(change: dict[str, str], expected: list[str]) -> None:
    assert findings(SOURCE | change) == expected


def test_all_findings_are_reported_connects_own_keys_first() -> None:
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
def test_a_sink_reads_topics_or_a_pattern_and_never_its_own_dead_letters(change: dict[str, str], expected: list[str]) -> None:
    assert findings(SINK | change) == expected


def test_a_pattern_that_is_none_is_refused() -> None:
    (finding,) = findings(SINK | {"topics": "", "topics.regex": "["})
    assert finding.startswith("Invalid value [ for configuration topics.regex: Invalid regex: ")


def test_a_converters_own_options_are_checked_below_its_prefix() -> None:
    options = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "maybe"}
    assert findings(SOURCE | options) == [
        "Invalid value maybe for configuration schemas.enable: Expected value to be either true or false"
    ]


def test_a_config_without_a_class_is_refused_without_showing_what_may_be_secret() -> None:
    with pytest.raises(BadRequestError) as caught:
        check({"name": "s", "topic": "t", "db.pass": "hunter2"})
    assert str(caught.value) == "Connector config {name=s, topic=t, db.pass=[hidden]} contains no connector type"


@pytest.mark.parametrize("name", ["org.example.Nope", "", "sluiceway.converters.string_converter.StringConverter", "json.dumps"])
def test_a_class_that_is_no_connector_is_a_bad_request_that_names_those_there_are(name: str) -> None:
    with pytest.raises(BadRequestError, match=r"Failed to find any class .* FileStreamSink, FileStreamSource"):
        check({"name": "s", "connector.class": name})


def test_a_refused_secret_is_not_shown() -> None:
    config = {"name": "s", "connector.class": f"{__name__}.SecretSource", "password": "hunter2", "port": "x"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sluiceway.herder.validation.connector_class", lambda _name: SecretSource)
        text = "\n".join(findings(config))
    assert "Invalid value [hidden] for configuration password: too short" in text
    assert "Invalid value x for configuration port" in text
    assert "hunter2" not in text


def test_a_key_that_both_connect_and_the_connector_declare_is_reported_once() -> None:
    errors = list(problems(ThoroughSource, {"name": "s", "connector.class": "x", "tasks.max": "0"}))
    assert errors == ["Invalid value 0 for configuration tasks.max: Value must be at least 1"]


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
