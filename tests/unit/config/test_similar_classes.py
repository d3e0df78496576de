"""Misspelled classes are answered with the installed ones that they may mean."""

from __future__ import annotations

import functools

import pytest

from sluiceway.config.similar_classes import similar_classes
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError, InvalidConfigError
from sluiceway.herder.plugin_classes import CONVERTER, HEADER_CONVERTER, PREDICATE, TRANSFORMATION, Kind, described
from sluiceway.herder.validation import checked, installed

_KAFKA = "org.apache.kafka.connect."
_MASK = f"{_KAFKA}transforms.MaskField"


@functools.cache
def known(kind: str) -> tuple[str, ...]:
    return tuple(plugin.name for plugin in installed(connectors_only=False) if plugin.type == kind)


def refusal(config: dict[str, str]) -> ConnectError:
    needed = {"name": "n", "connector.class": "FileStreamSource", "file": "/f", "topic": "t"}
    with pytest.raises(ConnectError) as refused:
        checked({**needed, **config}, WorkerConfig.of({}))
    return refused.value


@pytest.mark.parametrize(
    ("kind", "name", "meant"),
    [
        ("converter", "JsonConvertr", ["JsonConverter"]),
        ("converter", "jsonconverter", ["JsonConverter"]),
        ("converter", "json", ["JsonConverter"]),
        ("converter", f"{_KAFKA}json.JsonConvrter", [f"{_KAFKA}json.JsonConverter"]),
        ("converter", f"{_KAFKA}json.StringConverter", [f"{_KAFKA}storage.StringConverter"]),
        ("converter", "MsgPackConverter", []),
        ("converter", "FileStreamSource", []),
        ("header_converter", "SimpleHeaderConvertr", ["SimpleHeaderConverter"]),
        ("transformation", "MaskField", [f"{_MASK}$Key", f"{_MASK}$Value"]),
        ("transformation", "MaskFild", [f"{_MASK}$Key", f"{_MASK}$Value"]),
        ("transformation", "MaskFild$Valu", [f"{_MASK}$Value"]),
        ("transformation", f"{_KAFKA}transforms.MaskFeld$Key", [f"{_MASK}$Key"]),
        ("transformation", "RegexRoute", ["RegexRouter"]),
        ("transformation", "io.debezium.transforms.EventRouter", ["io.debezium.transforms.outbox.EventRouter"]),
        ("transformation", "Zzzz", []),
        ("predicate", "TopicNameMatch", ["TopicNameMatches"]),
        ("predicate", f"{_KAFKA}transforms.predicates.RecordIsTombston", [f"{_KAFKA}transforms.predicates.RecordIsTombstone"]),
    ],
)
def test_a_misspelled_class_may_mean(kind: str, name: str, meant: list[str]) -> None:
    assert similar_classes(name, known(kind)) == meant


@pytest.mark.parametrize("kind", [CONVERTER, HEADER_CONVERTER, PREDICATE, TRANSFORMATION], ids=lambda kind: kind.type)
def test_a_name_that_lacks_a_letter_means_the_class_with_it(kind: Kind) -> None:
    for name in known(kind.type):
        for lacking in range(name.rindex(".") + 1, len(name.partition("$")[0])):
            misspelled = name[:lacking] + name[lacking + 1 :]
            assert similar_classes(misspelled, known(kind.type)) == [name], misspelled


def test_a_full_name_means_the_class_of_the_package_that_is_most_like_it() -> None:
    both = ["io.confluent.connect.jdbc.JdbcSinkConnector", "io.debezium.connector.jdbc.JdbcSinkConnector"]
    for name in both:
        assert similar_classes(name.replace("Sink", "Snk"), both) == [name]


@pytest.mark.parametrize(
    ("config", "meant"),
    [
        ({"connector.class": "FileStremSource"}, ["FileStreamSource"]),
        ({"key.converter": "JsonConvertr"}, ["JsonConverter"]),
        ({"value.converter": "JsonConvertr", "header.converter": "StrngConverter"}, ["JsonConverter", "StringConverter"]),
        ({"transforms": "a", "transforms.a.type": "RegexRoutr"}, ["RegexRouter"]),
        ({"predicates": "p", "predicates.p.type": "RecordIsTombston"}, ["RecordIsTombstone"]),
    ],
)
def test_an_error_about_a_class_is_followed_by_the_question(config: dict[str, str], meant: list[str]) -> None:
    error = refusal(config)
    assert [line.rpartition(" Did you mean ")[2] for line in described(error).splitlines() if "Did you mean" in line] == [
        f"{each}?" for each in meant
    ]
    assert "Did you mean" not in str(error)  # Connect's message in the REST API


def test_a_class_that_is_like_none_and_other_errors_are_described_as_they_are() -> None:
    for error in (refusal({"key.converter": "Zzzz"}), InvalidConfigError(["Class x could not be found."]), ConnectError("no")):
        assert described(error) == str(error)
