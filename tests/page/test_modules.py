"""The page's modules without I/O, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser

from support.dashboard import MemoryConnectors
from support.page import PageServer, Ui, opened


@pytest.fixture(scope="module")
def ui(browser: Browser) -> Iterator[Ui]:
    connectors = MemoryConnectors()
    with PageServer(connectors.herder, connectors.dashboard) as server, opened(browser, server.url) as ui:
        yield ui


@pytest.mark.parametrize(
    ("hash_", "route"),
    [
        ("", {"view": "list"}),
        ("#a%2Fedit", {"view": "detail", "name": "a/edit"}),
        ("#a/edit", {"view": "edit", "name": "a"}),
        ("#a/history", {"view": "history", "name": "a"}),
        ("#%2Fplugins", {"view": "detail", "name": "/plugins"}),
        ("#/plugins", {"view": "plugins"}),
        ("#/plugins/a%24b", {"view": "plugin", "plugin": "a$b"}),
        ("#/plugins/a%24b/create", {"view": "create", "plugin": "a$b"}),
        ("#%zz", {"view": "list"}),
    ],
)
def test_a_hash_names_a_part_of_the_page(ui: Ui, hash_: str, route: dict[str, str]) -> None:
    assert ui.evaluated("route", "({ parsed }, hash) => parsed(hash)", hash_) == route


@pytest.mark.parametrize("name", ["plain", "a/b", "/plugins", "a b#c%", "ä$"])
def test_every_name_has_a_hash(ui: Ui, name: str) -> None:
    found = ui.evaluated("route", "({ parsed, ofConnector }, name) => parsed(ofConnector(name, 'offsets'))", name)
    assert found == {"view": "offsets", "name": name}


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "Expected a value."),
        ("[]", 1, "A config is a JSON object."),
        ('{"a": "b",\n}', 2, "Expected a key in double quotes."),
        ('{"a": "b"\n"c": "d"}', 2, "Expected , or } in an object."),
        ('{\n"a" "b"}', 2, "Expected : after a key."),
        ('{\n"a": "b\n"}', 2, "A string is not closed, or contains a backslash that starts no escape."),
        ('{"a": hello}', 1, "Unexpected text."),
        ('{"a": "b"} x', 1, "Unexpected text."),
        ('{"a": "b"', 1, "Expected , or } in an object."),
        ('{"a": "b",\n"a": "c"}', 2, "a is also on line 1."),
        ('{"a": null}', 1, "A value cannot be null. Remove the line."),
        ('{"a":\n{}}', 1, "A value is a string, a number, or a boolean."),
        ('{"a": 01}', 1, "Expected , or } in an object."),
    ],
)
def test_json_that_is_no_config_has_a_finding(ui: Ui, text: str, line: int, message: str) -> None:
    found = ui.evaluated("config", "({ fromText }, text) => fromText(text)", text)
    assert (found["config"], found["findings"]) == (None, [{"line": line, "message": message}])


@pytest.mark.parametrize(
    ("text", "config"),
    [
        ('{"a": 3.50, "b": true, "c": "\\u00e4\\n"}', {"a": "3.50", "b": "true", "c": "ä\n"}),
        ('{"name": "n", "config": {"a": 12345678901234567890}}', {"name": "n", "a": "12345678901234567890"}),
        ('{"name": "n", "config": {"name": "n", "a": ""}}', {"name": "n", "a": ""}),
        (" {} \n", {}),
    ],
)
def test_json_is_read_as_a_config(ui: Ui, text: str, config: dict[str, str]) -> None:
    assert ui.evaluated("config", "({ fromText }, text) => fromText(text).config", text) == config


def test_secrets_are_hidden_in_json_and_put_back(ui: Ui) -> None:
    config = {"a": "1", "my.password": "hunter2", "b": "typed", "c.token": "${file:/x:y}"}
    text, back = ui.evaluated(
        "config",
        """({ asText, fromText, withSecrets }, config) => {
            const text = asText(config, {b: "PASSWORD"});
            return [text, withSecrets(fromText(text).config, config)];
        }""",
        config,
    )
    assert "hunter2" not in text
    assert "typed" not in text
    assert "${file:/x:y}" in text
    assert back == config


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("connection.url", "jdbc:postgresql://me:secret@host/db", "jdbc:postgresql://[hidden]@host/db"),
        ("connection.password", "x", "[hidden]"),
        ("connection.password", "${env:P}", "${env:P}"),
        ("connection.password", "", ""),
        ("topic", "x", "x"),
    ],
)
def test_a_review_shows_no_secrets(ui: Ui, key: str, value: str, shown: str) -> None:
    assert ui.evaluated("config", "({ shown }, [key, value]) => shown(key, value)", [key, value]) == shown


def definition(
    name: str, group: str | None, order: int = -1, importance: str = "LOW", *, required: bool = False
) -> dict[str, Any]:
    return {"name": name, "group": group, "order_in_group": order, "importance": importance, "required": required}


def test_sections_follow_groups_orders_and_importance(ui: Ui) -> None:
    definitions = [
        definition("transforms", "Transforms", 12),
        definition("transforms.t.type", "Transforms: t", 0, "HIGH"),
        definition("errors.tolerance", "Error Handling", 3),
        definition("low", None),
        definition("high", None, importance="HIGH"),
        definition("must", None, required=True),
        definition("second", "Database", 2),
        definition("first", "Database", 1),
        definition("connector.class", "Common", 2, "HIGH", required=True),
        definition("name", "Common", 1, "HIGH", required=True),
        definition("value.converter.schemas.enable", "Schemas", 0),
        definition("value.converter.converter.type", None, required=True),
    ]
    groups = list(dict.fromkeys(each["group"] for each in definitions if each["group"]))
    infos = {"groups": groups, "configs": [{"definition": each, "value": None} for each in definitions]}
    found = ui.evaluated(
        "config",
        """({ sections }, [infos, own, keys]) =>
            sections(infos, own, keys).map(({ title, fields }) => [title, fields.map((field) => field.key)])""",
        [infos, [definition("airflow.mode", None)], ["name", "my.key", "spark.x", "producer.override.linger.ms"]],
    )
    assert found == [
        ["Common", ["name", "connector.class"]],
        ["Connector", ["must", "high", "low"]],
        ["Database", ["first", "second"]],
        ["Further keys", ["my.key"]],
        ["Converters", ["value.converter.schemas.enable"]],
        ["Transforms", ["transforms"]],
        ["Transforms: t", ["transforms.t.type"]],
        ["Error Handling", ["errors.tolerance"]],
        ["Kafka clients", ["producer.override.linger.ms"]],
        ["Airflow and Spark", ["airflow.mode", "spark.x"]],
    ]


def test_elements_that_stay_keep_the_focus(ui: Ui) -> None:
    kept = ui.evaluated(
        "dom",
        """({ arrange, h }) => {
            const parent = h("div"), [a, b, c] = ["a", "b", "c"].map((id) => h("input", { id }));
            document.body.append(parent);
            arrange(parent, [a, b]);
            b.focus();
            arrange(parent, [c, b]);
            const found = [[...parent.children].map((each) => each.id), document.activeElement === b];
            parent.remove();
            return found;
        }""",
    )
    assert kept == [["c", "b"], True]


def test_offsets_of_a_response_keep_their_spelling(ui: Ui) -> None:
    text = '{"offsets":[{"partition":{"a":1},"offset":{"n":9007199254740993,"x":1.50}},{"offset":null,"partition":{"a":2}}]}'
    found = ui.evaluated("offsets", "({ readOffsets }, text) => readOffsets(text)", text)
    assert found == [
        {"partition": '{"a":1}', "offset": '{"n":9007199254740993,"x":1.50}'},
        {"partition": '{"a":2}', "offset": "null"},
    ]


def test_dead_letter_queue_records_are_indented_unless_numbers_would_change(ui: Ui) -> None:
    texts = ['{"a":1}', '{"a":12345678901234567890}', "{no json", "1"]
    assert ui.evaluated("deadletters", "({ pretty }, texts) => texts.map(pretty)", texts) == ['{\n  "a": 1\n}', *texts[1:]]


def test_events_of_airflows_log_become_lines(ui: Ui) -> None:
    texts = ['{"timestamp":"2026-01-02T03:04:05.678Z","level":"info","event":"Started"}', '{"event":"no time"}', "plain"]
    found = ui.evaluated("log", "({ line }, texts) => texts.map(line)", texts)
    assert found == ["2026-01-02 03:04:05 INFO Started", "no time", "plain"]
