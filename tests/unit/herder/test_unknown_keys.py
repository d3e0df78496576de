"""Keys of a connector's config that nothing defines: found, named in the log and in a validation, or refused."""

from __future__ import annotations

import logging

import pytest

from sluiceway.config.unknown_keys import FAIL, IGNORE, POLICY, WARN, unknown_keys
from sluiceway.config.worker import WorkerConfig
from sluiceway.discovery import connector_class
from sluiceway.errors import ConfigError, InvalidConfigError
from sluiceway.herder.unknown_keys import report_unknown_keys
from sluiceway.herder.validation import checked, validate_config

SOURCE = {"name": "c", "connector.class": "FileStreamSource", "file": "/f", "topic": "t"}
UNKNOWN = {
    "topci": "topic",
    "tasks.mx": "tasks.max",
    "batchsize": "batch.size",
    "sluiceway.task.isolaton": "sluiceway.task.isolation",
    "errors.unknown.kyes": POLICY,
    "zzz": None,
}
READ = (
    *("producer.override.acks", "spark.executor.cores", "sluiceway.of.another.kind", "topic.creation.default.partitions"),
    *("key.converter.schemas.enable", "transforms.later.type", "airflow.owner", "errors.log.enable", POLICY),
    *("confluent.license", "confluent.topic.bootstrap.servers"),
)


def worker(policy: str | None = None) -> WorkerConfig:
    return WorkerConfig.of({"bootstrap.servers": "localhost:9092", **({} if policy is None else {POLICY: policy})})


def told(config: dict[str, str], policy: str | None = None) -> dict[str, tuple[str, ...]]:
    """Return the undefined keys of a validation's result with their errors."""
    values = [each.value for each in validate_config(config, worker(policy)).configs if each.definition is None and each.value]
    return {each.name: each.errors for each in values}


@pytest.mark.parametrize(("key", "meant"), UNKNOWN.items())
def test_an_unknown_key_is_named_with_the_one_that_may_be_meant(key: str, meant: str | None) -> None:
    text = f"Nothing defines the key {key}, so it has no effect." + (f" Did you mean {meant}?" if meant else "")
    assert told({**SOURCE, key: "x"}, FAIL) == {key: (text,)}
    for policy in (None, WARN, IGNORE):
        assert told({**SOURCE, key: "x"}, policy) == {}  # the answer is Kafka Connect's


@pytest.mark.parametrize("key", READ)
def test_a_key_that_something_reads_is_not_unknown(key: str) -> None:
    assert key not in told({**SOURCE, key: FAIL if key == POLICY else "true"}, FAIL)


@pytest.mark.parametrize(
    ("of_connector", "of_worker", "expected"),
    [
        (None, None, WARN),
        (FAIL, None, FAIL),
        (None, FAIL, FAIL),
        (WARN, FAIL, WARN),
        (IGNORE, FAIL, IGNORE),
        (None, IGNORE, IGNORE),
    ],
)
def test_the_connectors_choice_wins_over_the_workers(
    of_connector: str | None, of_worker: str | None, expected: str, caplog: pytest.LogCaptureFixture
) -> None:
    config = {**SOURCE, "topci": "hunter2", **({} if of_connector is None else {POLICY: of_connector})}
    text = "Nothing defines the key topci, so it has no effect. Did you mean topic?"
    connector, properties = connector_class("FileStreamSource"), worker(of_worker)
    if expected == FAIL:
        with pytest.raises(InvalidConfigError, match=r"the key topci, .* Did you mean topic\?"):
            checked(config, properties)
        with pytest.raises(ConfigError, match="Connector c: Nothing defines the key topci"):
            report_unknown_keys("c", config, connector, properties)
        return
    assert checked(config, properties).config == config
    with caplog.at_level(logging.WARNING):
        report_unknown_keys("c", config, connector, properties)
    assert caplog.messages == ([f"[c|worker] {text}"] if expected == WARN else [])
    assert told(config, of_worker) == {}


def test_a_secret_in_an_unknown_key_is_hidden() -> None:
    found = validate_config({**SOURCE, "db.password": "hunter2", "zzz": "shown"}, worker(FAIL)).configs
    values = {each.value.name: each.value.value for each in found if each.value}
    assert (values["db.password"], values["zzz"]) == ("[hidden]", "shown")


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("value.converter.schema.enable", "value.converter.schemas.enable"),
        ("transforms.line.feild", "transforms.line.field"),
        ("transforms.other.feild", None),  # of another transform
        ("value.converter.another", None),
        ("value.converter.decimal.fromat", None),  # what it resembles is set: both may be read
        ("value.converter.a", None),
    ],
)
def test_a_key_of_a_converter_or_transform_is_unknown_if_it_differs_little_from_a_defined_one(
    key: str, meant: str | None
) -> None:
    defined = ["value.converter", "value.converter.schemas.enable", "value.converter.decimal.format", "transforms.line.field"]
    config = {"value.converter": "JsonConverter", "value.converter.decimal.format": "NUMERIC", key: "x"}
    assert unknown_keys(config, defined) == ({} if meant is None else {key: meant})


@pytest.mark.parametrize(
    ("key", "meant"), [("raw.setting", None), ("opic", None), ("tasks.maxx", "tasks.max"), ("source.x", None)]
)
def test_a_plugin_that_may_read_keys_which_it_does_not_define_is_believed(key: str, meant: str | None) -> None:
    expected = {} if meant is None else {key: meant}
    assert unknown_keys({key: "x"}, ["topic", "tasks.max"], reads_others=True) == expected


def test_keys_that_a_java_plugin_does_not_define_are_not_said_to_have_no_effect(caplog: pytest.LogCaptureFixture) -> None:
    java = type("InJar", (connector_class("FileStreamSource"),), {"plugin": object()})
    config = {**SOURCE, "raw.setting": "x", "tasks.maxx": "1"}
    with caplog.at_level(logging.WARNING):
        report_unknown_keys("c", config, java, worker())
    assert [message.partition("the key ")[2].partition(",")[0] for message in caplog.messages] == ["tasks.maxx"]
