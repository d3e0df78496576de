"""Task configs as the config topic stores them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from sluiceway.api import SinkConnector, SinkTask, SourceConnector
from sluiceway.config.definition import ConfigDef
from sluiceway.connectors.file.source import FileStreamSourceConnector
from sluiceway.errors import ConnectError
from sluiceway.herder.reconcile import desired_task_configs, with_connect_keys


class PlainTask(SinkTask):
    def start(self, config: Mapping[str, str]) -> None: ...

    def put(self, records: Sequence[Any]) -> None: ...


class PlainSink(SinkConnector):
    """Generates the number of tasks in its config, regardless of ``tasks.max``."""

    task_class = PlainTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef()

    def start(self, config: Mapping[str, str]) -> None:
        self.config = config

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        self.asked_for = max_tasks
        return [{"number": str(number)} for number in range(int(self.config["make"]))]


def sink(**config: str) -> tuple[PlainSink, dict[str, str]]:
    connector = PlainSink()
    connector.start(config)
    return connector, config


def test_a_task_config_names_the_java_task_so_that_a_kafka_connect_worker_can_take_over() -> None:
    connector = FileStreamSourceConnector()
    config = {"name": "s", "connector.class": "FileStreamSource", "file": "/f", "topic": "t"}
    connector.start(config)
    assert desired_task_configs(connector, config) == [
        config | {"task.class": "org.apache.kafka.connect.file.FileStreamSourceTask"}
    ]


def test_a_connector_without_a_java_class_names_its_python_task() -> None:
    assert with_connect_keys(PlainSink(), {}, [{}]) == [{"task.class": f"{PlainTask.__module__}.PlainTask"}]


def test_a_sink_task_config_has_the_topics_and_no_other_keys_of_the_connector() -> None:
    connector, config = sink(make="2", topics="a,b", secret="s", **{"tasks.max": "2"})
    made = desired_task_configs(connector, config)
    assert [task["number"] for task in made] == ["0", "1"]
    assert all(task["topics"] == "a,b" and "topics.regex" not in task and "secret" not in task for task in made)
    assert with_connect_keys(PlainSink(), {"topics.regex": "a.*"}, [{"topics.regex": "b"}])[0]["topics.regex"] == "a.*"


def test_the_connector_is_asked_for_at_most_tasks_max_tasks() -> None:
    connector, config = sink(make="1", **{"tasks.max": " 3 "})
    desired_task_configs(connector, config)
    assert connector.asked_for == 3


def test_one_task_is_the_default() -> None:
    connector, config = sink(make="1")
    desired_task_configs(connector, config)
    assert connector.asked_for == 1


def test_more_tasks_than_allowed_are_refused_unless_enforcement_is_off() -> None:
    connector, config = sink(make="3", name="greedy", **{"tasks.max": "2"})
    with pytest.raises(ConnectError, match=r"^The connector greedy has generated 3 tasks, which is greater than 2, the maximum"):
        desired_task_configs(connector, config)
    assert len(desired_task_configs(connector, config | {"tasks.max.enforce": "false"})) == 3


def test_a_source_is_not_given_topics_to_read() -> None:
    assert "topics" not in with_connect_keys(FileStreamSourceConnector(), {"topics": "x"}, [{}])[0]
    assert issubclass(FileStreamSourceConnector, SourceConnector)
