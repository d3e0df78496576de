"""A report's findings about plugins, keys and worker settings."""

from __future__ import annotations

from typing import Any

from sluiceway.cli.findings import Finding, Findings
from sluiceway.cli.migration_report import (
    ConnectorReport,
    Implementation,
    connector_report,
    is_named,
    is_shared,
    report_rows,
    version_there,
    worker_notes,
)
from sluiceway.config.plugin_keys import plugin_keys, wanted_version

CONFIG = {
    "name": "orders",
    "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
    "value.converter": "JsonConverter",
    "transforms": "route",
    "transforms.route.type": "io.debezium.transforms.ByLogicalTableRouter",
    "transforms.route.topic.regex": "(.*)",
    "transforms.route.predicate": "p",
    "predicates.p.type": "TopicNameMatches",
    "some.type": "x",
}
THERE = [
    {"class": "io.debezium.connector.postgresql.PostgresConnector", "type": "source", "version": "3.6.0.Final"},
    {"class": "io.debezium.connector.postgresql.PostgresConnector", "type": "source", "version": "3.7.0.Final"},
    {"class": "org.apache.kafka.connect.json.JsonConverter", "type": "converter", "version": "4.3.0"},
    {"class": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches", "type": "predicate"},
]
PYTHON = Implementation("Python", "4.3.0")


def report(
    connector: Implementation | None, findings: Findings | None = None, **others: Implementation | None
) -> ConnectorReport:
    found = {
        "connector.class": connector,
        "value.converter": PYTHON,
        "predicates.p.type": PYTHON,
        "transforms.route.type": PYTHON,
    }
    found |= {"transforms.route.type": others["transform"]} if others else {}
    info = {"name": "orders", "type": "source", "config": CONFIG}
    return connector_report(info, "RUNNING", THERE, found, findings or Findings("orders", [], []))


def test_the_plugins_of_a_config_are_its_connector_converters_transforms_and_predicates() -> None:
    keys = ["connector.class", "value.converter", "transforms.route.type", "predicates.p.type"]
    assert list(plugin_keys(CONFIG)) == keys


def test_a_plugin_is_found_by_class_name_and_alias() -> None:
    assert is_named("a.b.FileStreamSourceConnector", "FileStreamSource")
    assert is_named("a.b.FileStreamSourceConnector", "FileStreamSourceConnector")
    assert is_named("a.b.Filter", "a.b.Filter")
    assert not is_named("a.b.Filter", "Fil")
    assert version_there(THERE, "Postgres") == "3.7.0.Final"
    assert version_there(THERE, "TopicNameMatches") == version_there(THERE, "None") == ""


def test_each_plugin_may_ask_for_a_version() -> None:
    config = {"connector.plugin.version": "1", "key.converter.plugin.version": "2", "transforms.a.plugin.version": "3"}
    keys = ("connector.class", "key.converter", "transforms.a.type", "predicates.a.type")
    assert [wanted_version(config, key) for key in keys] == ["1", "2", "3", None]


def test_a_connector_in_python_can_move() -> None:
    found = report(PYTHON)
    assert report_rows([found])[1] == ("orders", "source", "RUNNING", CONFIG["connector.class"], "Python", "yes")
    assert found.details() == []


def test_versions_of_java_plugins_that_differ_are_shown() -> None:
    same, newer = Implementation("Java", "3.7.0.Final", "/plugins/pg"), Implementation("Java", "3.8.0.Final", "/plugins/pg")
    assert report(same).row()[4] == "Java 3.7.0.Final; others Python"
    assert report(newer).row()[4] == "Java 3.8.0.Final (source: 3.7.0.Final); others Python"
    assert report(newer).to_json()["plugins"][0] == {
        "key": "connector.class",
        "class": CONFIG["connector.class"],
        "source_version": "3.7.0.Final",
        "implementation": "java",
        "version": "3.8.0.Final",
        "location": "/plugins/pg",
    }


def test_a_missing_plugin_is_named_with_its_version_and_place() -> None:
    twice = Findings("orders", [Finding("transforms.route.type", "x", "Class x could not be found.")], [])
    found = report(PYTHON, twice, transform=None)
    assert not found.movable
    assert found.row()[4:] == ("Python; others missing", "no")
    class_name = "io.debezium.transforms.ByLogicalTableRouter"
    line = (
        f"  missing  transforms.route.type={class_name}: give its folder in the source's plugin.path, its archive, or its Maven "
        "coordinates to 'sluiceway plugins install', and restart the target's REST API"
    )
    assert found.details() == ["\norders:", line]
    assert ", version 3.7.0.Final at the source: give its folder" in report(None).details()[1]


def test_errors_keep_a_connector_from_moving_and_warnings_do_not() -> None:
    wrong, unread = Finding("tasks.max", "x", "not a number"), Finding("topcis", "t", "unknown key")
    refused, warned = report(PYTHON, Findings("orders", [wrong], [])), report(PYTHON, Findings("orders", [], [unread]))
    assert (refused.movable, warned.movable) == (False, True)
    assert refused.details()[1:] == ["  error    tasks.max=x: not a number"]
    assert warned.details()[1:] == ["  warning  topcis=t: unknown key"]
    document = refused.to_json()
    assert document["errors"] == [{"key": "tasks.max", "value": "x", "message": "not a number"}]
    assert document["worker_converters"] == ["key.converter"]


def test_settings_of_the_worker_file_that_connectors_depend_on_are_named_without_secrets() -> None:
    assert worker_notes([report(PYTHON)], None) == [
        "1 connector(s) use the converters of the worker file (orders). The target's worker file must have the same."
    ]
    file = {
        "group.id": "g",
        "config.storage.topic": "c",
        "offset.storage.topic": "o",
        "status.storage.topic": "s",
        "key.converter": "JsonConverter",
        "key.converter.basic.auth.user.info": "user:hunter2",
        "config.providers": "file",
    }
    notes = worker_notes([report(PYTHON)], file)
    assert notes[0].endswith("same: key.converter=JsonConverter, key.converter.basic.auth.user.info=[hidden].")
    assert notes[1:] == [
        "Internal topics of the source: c, o, s; group.id=g.",
        "The target's worker file must have the same config.providers=file.",
    ]


def test_clusters_with_the_same_status_records_share_their_topics() -> None:
    def statuses(**workers: str) -> dict[str, Any]:
        return {name: {"connector": {"state": "RUNNING", "worker_id": worker}} for name, worker in workers.items()}

    assert is_shared(statuses(a="w:1", b="w:2"), statuses(a="w:1", b="w:2"))
    assert not is_shared(statuses(a="w:1", b="w:2"), statuses(a="w:1", b="x:2"))
    assert not is_shared(statuses(a="w:1"), statuses())
    assert not is_shared(statuses(a=""), statuses(a=""))
