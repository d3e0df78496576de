"""The page's modules without I/O, in a real browser."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

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
        ("#/flow", {"view": "flow"}),
        ("#%2Fflow", {"view": "detail", "name": "/flow"}),
        ("#flow", {"view": "detail", "name": "flow"}),
        ("#/plugins", {"view": "plugins"}),
        ("#/plugins/a%24b", {"view": "plugin", "plugin": "a$b"}),
        ("#/plugins/a%24b/create", {"view": "create", "plugin": "a$b"}),
        ("#%zz", {"view": "list"}),
    ],
)
def test_a_hash_names_a_part_of_the_page(ui: Ui, hash_: str, route: dict[str, str]) -> None:
    assert ui.evaluated("route", "({ parsed }, hash) => parsed(hash)", hash_) == route


@pytest.mark.parametrize(
    ("key", "known"),
    [
        ("topci", "topic"),
        ("tasks.maxx", "tasks.max"),
        ("task.max", "tasks.max"),
        ("valeu.convertor", "value.converter"),
        ("tpc", None),
        ("file", None),
        ("", None),
    ],
)
def test_a_misspelt_key_is_alike_to_a_known_one(ui: Ui, key: str, known: str | None) -> None:
    names = ["topics", "topic", "tasks.max", "value.converter", "key.converter"]
    assert ui.evaluated("config", "({ alike }, [key, names]) => alike(key, names) ?? null", [key, names]) == known


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
        ("x", "a b://me:p/w@d@host\tc://:p@two d://three:1", "a b://[hidden]@host\tc://[hidden]@two d://three:1"),
        ("x", "://:" * 250_000, "://:" * 250_000),  # takes no quadratic time
        ("x", "a@" * 500_000, "a@" * 500_000),
    ],
    ids=lambda text: text[:40],
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
        definition("offsets.storage.topic", "offsets.topic", 1),
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
        ["Where and when it runs", ["airflow.mode", "spark.x"]],
        ["Connector", ["must", "high", "low"]],
        ["Database", ["first", "second"]],
        ["Further keys", ["my.key"]],
        ["Converters", ["value.converter.schemas.enable"]],
        ["Transforms", ["transforms"]],
        ["Transforms: t", ["transforms.t.type"]],
        ["Error Handling", ["errors.tolerance"]],
        ["Offsets topic", ["offsets.storage.topic"]],
        ["Kafka clients", ["producer.override.linger.ms"]],
    ]


def test_the_list_of_sections_has_those_that_are_shown_with_their_errors(ui: Ui) -> None:
    def key(name: str, group: str, *errors: str, visible: bool = True) -> dict[str, Any]:
        text = {"type": "STRING", "documentation": "", "default_value": None}
        return {"definition": definition(name, group) | text, "value": {"name": name, "visible": visible, "errors": [*errors]}}

    configs = [
        key("a", "A"),
        key("b", "B", "wrong", "worse"),
        key("c", "C", visible=False),
        key("d", "D", visible=False),
        key("e", "D"),
    ]
    found = ui.evaluated(
        "form",
        """({ Form }, infos) => {
            const form = new Form(() => {});
            form.show(infos, { own: [], choices: {} }, {}, true);
            return [...form.index.children].map((each) => [each.textContent, each.hidden]);
        }""",
        {"groups": ["A", "B", "C", "D"], "configs": configs},
    )
    assert found == [["A", False], ["B 2 errors", False], ["C", True], ["D", False]]


def test_the_catalogue_is_sorted_by_system_with_test_data_last(ui: Ui) -> None:
    found = [
        {"type": kind, "system": system, "class": name}
        for name, kind, system in (
            ("a.Mock", "source", "Test data"),
            ("a.Z", "sink", "Zoo"),
            ("a.InB", "source", "Bee"),
            ("a.Json", "converter", None),
            ("a.OutB", "sink", "Bee"),
        )
    ]
    shown = ui.evaluated(
        "plugins",
        "({ bySystem }, found) => bySystem(found).map(([system, all]) => [system, all.map((each) => each.class)])",
        found,
    )
    assert shown == [["Bee", ["a.InB", "a.OutB"]], ["Zoo", ["a.Z"]], ["Test data", ["a.Mock"]]]


PYTHON = "Traceback (most recent call last):\n  File a\nKeyError: 'a'"


@pytest.mark.parametrize(
    ("trace", "cause"),
    [
        (None, None),
        ("", None),
        ("a.B: no\n\tat a.B.c(B.java:1)", None),
        ("a.B: no\n\tat x\nCaused by: c.D: why\n\tat y\nCaused by: e.F: really why\n\t... 3 more", "e.F: really why"),
        (f"{PYTHON}\n\nThe above exception was the direct cause of the following exception:\n\n{PYTHON}", "KeyError: 'a'"),
        (f"{PYTHON}\n", None),
    ],
)
def test_the_first_cause_of_a_trace_is_shown(ui: Ui, trace: str | None, cause: str | None) -> None:
    assert ui.evaluated("format", "({ rootCause }, trace) => rootCause(trace)", trace) == cause


@pytest.mark.parametrize(
    ("type_", "recommended", "known", "options"),
    [
        ("STRING", [], ["bulk", "incrementing"], ["", "bulk", "incrementing", "\0other"]),
        ("STRING", ["bulk"], ["bulk", "incrementing"], ["", "bulk", "\0other"]),  # it depends on the config
        ("BOOLEAN", [], [], ["", "true", "false", "\0other"]),
        ("STRING", [], [], None),
        ("LIST", [], ["a"], None),
        ("PASSWORD", [], ["a"], None),
    ],
)
def test_known_values_are_choices(
    ui: Ui, type_: str, recommended: list[str], known: list[str], options: list[str] | None
) -> None:
    field = {"name": "mode", "type": type_, "required": False, "importance": "HIGH", "documentation": "", "width": "SHORT"}
    found = ui.evaluated(
        "field",
        """({ Field }, [definition, recommended, choices]) => {
            const field = new Field("mode", () => {});
            field.update({ definition, found: { errors: [], recommended_values: recommended }, choices }, undefined, false);
            return field.control.tagName === "SELECT" ? [...field.control.options].map((each) => each.value) : null;
        }""",
        [field, recommended, known],
    )
    assert found == options


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


@pytest.mark.parametrize(
    ("kind", "value", "query"),
    [
        ("earliest", "", "to=earliest"),
        ("latest", "ignored", "to=latest"),
        ("shift", " -100 ", "shiftBy=-100"),
        ("shift", "1.5", "Enter a number of records, such as -100."),
        ("time", "", "Enter a date and a time."),
        ("time", "2026-01-02T03:04:05", None),
    ],
)
def test_a_target_of_offsets_becomes_a_query(ui: Ui, kind: str, value: str, query: str | None) -> None:
    local = dt.datetime(2026, 1, 2, 3, 4, 5).astimezone(dt.timezone.utc)
    expected = query or urlencode({"to": local.isoformat(timespec="milliseconds").replace("+00:00", "Z")})
    found = ui.evaluated(
        "offsetpicker",
        """({ targetQuery, TargetError }, [kind, value]) => {
            try {
                return String(targetQuery(kind, value));
            } catch (error) {
                if (!(error instanceof TargetError)) throw error;
                return error.message;
            }
        }""",
        [kind, value],
    )
    assert found == expected


def test_a_shift_of_a_sink_names_its_partitions_with_offsets(ui: Ui) -> None:
    partitions = [f'{{"kafka_partition":{number},"kafka_topic":"{topic}"}}' for topic, number in (("a", 0), ("b c", 3), ("a", 2))]
    found = ui.evaluated(
        "offsetpicker",
        """({ queries }, partitions) => [["shiftBy", true], ["shiftBy", false], ["to", true]].map(([target, isSink]) =>
            queries(new URLSearchParams({ [target]: "-1" }), partitions, isSink).map(String))""",
        partitions,
    )
    assert found == [
        ["shiftBy=-1&topic=a&partition=0&partition=2", "shiftBy=-1&topic=b+c&partition=3"],
        ["shiftBy=-1"],
        ["to=-1"],
    ]


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        (
            '{"b": 1.50, "a": {"d": [1, {"y":null,"x":"\u00e4"}], "c": true}}',
            '{"a":{"c":true,"d":[1,{"x":"ä","y":null}]},"b":1.50}',
        ),
        (" 9007199254740993 ", "9007199254740993"),
    ],
)
def test_equal_json_has_one_canonical_text(ui: Ui, text: str, canonical: str) -> None:
    assert ui.evaluated("json", "({ canonical, parse }, text) => canonical(parse(text))", text) == canonical


RECORD: dict[str, Any] = {"number": 1, "message": None, "before": None, "steps": [], "error": None}


def image(topic: str, value: object, partition: int | None = None) -> dict[str, Any]:
    data = {"schema": None, "data": value}
    return {"topic": topic, "partition": partition, "timestamp": None, "key": data, "value": data, "headers": []}


def test_a_previewed_record_has_stages(ui: Ui) -> None:
    read, twice = image("t", 1), [image("t", 2), image("t", 3)]
    steps = [
        {"transform": "same", "class": "C", "outcome": "unchanged"},
        {"transform": "split", "class": "C", "outcome": "changed", "records": twice},
        {"transform": "drop", "class": "C", "outcome": "dropped"},
    ]
    record = {**RECORD, "before": read, "steps": steps, "written": [{"topic": "t"}]}
    found = ui.evaluated("previewed", "({ stagesOf }, record) => stagesOf(record)", record)
    assert [(each["stage"], each["outcome"], each["image"]) for each in found] == [
        ("Read", None, read),
        ("same", "unchanged", None),
        ("split", "changed", twice[0]),
        ("split", "changed", twice[1]),
        ("drop", "dropped", None),
        ("Written to Kafka", None, {"topic": "t"}),
    ]


@pytest.mark.parametrize(
    ("after", "parts"),
    [
        (image("t", 1), []),
        (image("u", 1), ["where"]),
        (image("t", 1, partition=0), ["where"]),
        (image("t", 2), ["key", "value"]),
        ({**image("t", 1), "headers": [{"key": "a"}]}, ["headers"]),
    ],
)
def test_parts_that_a_transform_changed_are_marked(ui: Ui, after: dict[str, Any], parts: list[str]) -> None:
    assert ui.evaluated("previewed", "({ changed }, [after, before]) => changed(after, before)", [after, image("t", 1)]) == parts


def test_changes_of_a_history_keep_the_spelling_of_offsets(ui: Ui) -> None:
    created = '{"version":1,"change":"created","config":{"k":"v"},"edits":[],"state":{"before":null,"after":"STARTED"}}'
    offsets = '[{"partition":{"p":1},"before":null,"after":{"n":9007199254740993}}]'
    moved = f'{{"version":2,"change":"offsets","offsets":{offsets},"partitions":2}}'
    found = ui.evaluated(
        "history",
        "({ readChanges, editsOf, summary }, text) => readChanges(text).map((each) => [summary(each), editsOf(each)])",
        f'{{"name":"a","history":[{created},{moved}]}}',
    )
    assert found == [
        ["offsets of 2 partitions", [{"key": '{"p":1}', "before": None, "after": '{"n":9007199254740993}'}]],
        ["created", [{"key": "k", "before": None, "after": "v"}, {"key": "target state", "before": None, "after": "STARTED"}]],
    ]


@pytest.mark.parametrize(
    ("change", "summary"),
    [
        ({"change": "state", "state": {"before": "STARTED", "after": "PAUSED"}}, "state: STARTED → PAUSED"),
        ({"change": "config", "edits": [{"key": key} for key in "abcde"]}, "config: a, b, c and 2 more"),
        ({"change": "config", "edits": []}, "config"),
        ({"change": "deleted", "edits": []}, "deleted"),
        ({"change": "offsets", "partitions": 1}, "offsets of 1 partition"),
    ],
)
def test_a_change_of_a_history_has_a_summary(ui: Ui, change: dict[str, Any], summary: str) -> None:
    assert ui.evaluated("history", "({ summary }, change) => summary(change)", change) == summary


def test_a_rollback_shows_hidden_values_that_stay(ui: Ui) -> None:
    config, current = {"a": "1", "s": "[hidden]", "gone": "[hidden]"}, {"a": "2", "s": "${env:S}"}
    found = ui.evaluated("history", "({ restored }, [config, current]) => restored(config, current)", [config, current])
    assert found == {"a": "1", "s": "${env:S}", "gone": "[hidden]"}


def test_dead_letter_queue_records_are_indented_unless_numbers_would_change(ui: Ui) -> None:
    texts = ['{"a":1}', '{"a":12345678901234567890}', "{no json", "1"]
    assert ui.evaluated("format", "({ pretty }, texts) => texts.map(pretty)", texts) == ['{\n  "a": 1\n}', *texts[1:]]


def test_lines_of_a_log_belong_to_the_connector_or_a_task(ui: Ui) -> None:
    texts = [
        "2026-01-02 03:04:05 INFO Task started",
        "2026-01-02 03:04:05 INFO [a|worker] Starting",
        "2026-01-02 03:04:05 ERROR [a|task-1] Failed",
        "2026-01-02 03:04:05 ERROR Traceback (most recent call last):",
        '  File "x.py", line 1',
        "ValueError: no",
        "26/01/02 03:04:05 INFO SparkContext: Running",
        "2026-01-02 03:04:05 INFO [b|task-0] Of another connector",
        "  with a second line",
        "2026-01-02 03:04:05 INFO [a|task-10] Done",
    ]
    found = ui.evaluated("log", "({ byPart }, [texts, name]) => byPart(texts, name)", [texts, "a"])
    assert [each["text"] for each in found] == texts
    assert [each["part"] for each in found] == [None, "worker", *["task-1"] * 4, None, None, None, "task-10"]


def test_events_of_airflows_log_become_lines(ui: Ui) -> None:
    texts = ['{"timestamp":"2026-01-02T03:04:05.678Z","level":"info","event":"Started"}', '{"event":"no time"}', "plain"]
    found = ui.evaluated("log", "({ line }, texts) => texts.map(line)", texts)
    assert found == ["2026-01-02 03:04:05 INFO Started", "no time", "plain"]


def connection(connector: str, kind: str, topic: str, **numbers: Any) -> dict[str, Any]:
    return {
        "connector": connector,
        "topic": topic,
        "kind": kind,
        "planned": False,
        "rate": None,
        "lag": None,
        "records": None,
        **numbers,
    }


GRAPH: dict[str, Any] = {
    "connectors": [{"name": name, "type": "", "class": "a.B", "shown": "RUNNING"} for name in ("in", "alone", "out")],
    "topics": [{"id": "/t", "names": ["t"], "count": 1, "cluster": ""}, {"id": "/u", "names": ["u"], "count": 1, "cluster": ""}],
    "edges": [connection("in", "writes", "/t"), connection("out", "reads", "/t"), connection("out", "dead_letters", "/u")],
}


def test_parts_of_a_graph_that_nothing_connects_are_drawn_apart(ui: Ui) -> None:
    found = ui.evaluated("layout", "({ parts }, graph) => parts(graph)", GRAPH)
    assert [[each["name"] for each in part["connectors"]] for part in found] == [["in", "out"], ["alone"]]
    assert [len(part["edges"]) for part in found] == [3, 0]


def test_records_move_from_the_left_to_the_right(ui: Ui) -> None:
    found = ui.evaluated("layout", "({ parts, placed }, graph) => placed(parts(graph)[0])", GRAPH)
    nodes = found["nodes"]
    across = [nodes[each]["x"] for each in ("connector in", "/t", "connector out", "/u")]
    assert across == sorted(across)
    starts = [tuple(each["points"][0].values()) for each in found["edges"]]
    sides = [(each["x"] + each["width"] / 2, each["y"]) for each in (nodes["connector in"], nodes["/t"], nodes["connector out"])]
    assert starts == sides
    assert all(0 <= each["x"] <= found["width"] and 0 <= each["y"] <= found["height"] for each in found["edges"])


def test_a_circle_of_connectors_and_topics_can_be_drawn(ui: Ui) -> None:
    edges = [connection("in", "writes", "/t"), connection("out", "reads", "/t"), connection("out", "dead_letters", "/t")]
    found = ui.evaluated("layout", "({ placed }, graph) => placed(graph)", {**GRAPH, "edges": edges})
    assert len(found["edges"]) == 3


@pytest.mark.parametrize(
    ("edge", "label"),
    [
        (connection("a", "writes", "/t", rate=1234.5), ["1,235/s"]),
        (connection("a", "reads", "/t", rate=0, lag=0), ["0/s", "lag 0"]),
        (connection("a", "reads", "/t"), []),
        (connection("a", "writes", "/t", planned=True), ["not yet"]),
        (connection("a", "dead_letters", "/t", records=1), ["1", "dead letter"]),
        (connection("a", "dead_letters", "/t", records=0), ["0", "dead letters"]),
        (connection("a", "dead_letters", "/t"), ["dead letters"]),
    ],
)
def test_an_edge_says_what_moves_along_it(ui: Ui, edge: dict[str, Any], label: list[str]) -> None:
    assert ui.evaluated("picture", "({ edgeLabel }, edge) => edgeLabel(edge)", edge) == label


@pytest.mark.parametrize(
    ("topic", "label"),
    [
        ({"names": ["t"], "count": 1, "cluster": ""}, "t"),
        ({"names": ["t"], "count": 1201, "cluster": ""}, "t and 1,200 more"),
        ({"names": ["t"], "count": 1, "cluster": "far:9092"}, "t at far:9092"),
    ],
)
def test_a_node_names_its_topics(ui: Ui, topic: dict[str, Any], label: str) -> None:
    assert ui.evaluated("picture", "({ topicLabel }, topic) => topicLabel(topic)", topic) == label


@pytest.mark.parametrize(
    ("points", "path"),
    [
        ([(0, 0), (10, 5)], "M0,0 L10,5"),
        ([(0, 0), (10, 5), (20, 0)], "M0,0 Q10,5 20,0"),
        ([(0, 0), (10, 4), (20, 8), (30, 8)], "M0,0 Q10,4 15,6 Q20,8 30,8"),
    ],
)
def test_a_line_ends_at_its_nodes_and_bends_between(ui: Ui, points: list[tuple[int, int]], path: str) -> None:
    assert ui.evaluated("picture", "({ curve }, points) => curve(points)", [{"x": x, "y": y} for x, y in points]) == path
