"""A REST client that records calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sluiceway.rest.client import ConnectClient, RestError

CONFIG = {"name": "a", "connector.class": "FileStreamSource", "file": "/f", "topic": "t", "db.password": "hunter2"}


STATUS = {
    "name": "a",
    "type": "source",
    "connector": {"state": "RUNNING", "worker_id": "h:1"},
    "tasks": [{"id": 0, "state": "FAILED", "worker_id": "h:1", "trace": "Error: boom\n"}],
}


METRICS = """\
# TYPE sluiceway_task_row_form_batches_total counter
sluiceway_task_row_form_batches_total{connector="a",task="1",reason="value"} 2.0
sluiceway_task_row_form_batches_total{connector="a",task="1",reason="few-records"} 1.0
sluiceway_task_row_form_batches_total{connector="a",task="0",reason="task"} 3.0
sluiceway_task_row_form_batches_total{connector="b",task="0",reason="headers"} 9.0
# TYPE sluiceway_task_columnar_batches_total counter
sluiceway_task_columnar_batches_total{connector="a",task="1"} 12.0
sluiceway_task_columnar_batches_total{connector="a",task="0"} 0.0
"""


OFFSETS = [{"partition": {"filename": "/f"}, "offset": {"position": 7}}]


FOUND: list[dict[str, Any]] = [
    {"partition": {"kafka_topic": "t", "kafka_partition": 0}, "before": {"kafka_offset": 9}, "offset": {"kafka_offset": 4}},
    {"partition": {"kafka_topic": "t", "kafka_partition": 1}, "before": None, "offset": {"kafka_offset": 5}},
]


DEFINITION = {
    "name": "file",
    "type": "STRING",
    "required": False,
    "default_value": None,
    "importance": "HIGH",
    "documentation": "D.",
}


_WHO = {"user": "bob", "authenticated": False, "address": "10.0.0.7", "client": "curl/8", "note": None}
_CREATED = {"file": "/e", "topic": "t", "name": "a", "connector.class": "FileStreamSource", "db.password": "[hidden]"}

HISTORY: list[dict[str, Any]] = [
    _WHO
    | {"version": 1, "timestamp": 0, "change": "created", "config": _CREATED, "edits": []}
    | {"state": {"before": None, "after": "STARTED"}},
    _WHO
    | {"version": 2, "timestamp": 1000, "change": "config", "config": _CREATED | {"file": "/f"}, "user": None}
    | {"edits": [{"key": "file", "before": "/e", "after": "/f"}, {"key": "old", "before": "1", "after": None}]},
    _WHO | {"version": 3, "timestamp": 2000, "change": "state", "state": {"before": "STARTED", "after": "STOPPED"}},
    _WHO
    | {"version": 4, "timestamp": 3000, "change": "offsets", "partitions": 2, "authenticated": True}
    | {"offsets": [{"partition": {"filename": "/f"}, "before": None, "after": {"position": 7}}]},
    _WHO | {"version": 5, "timestamp": 4000, "change": "deleted", "config": None, "edits": [], "note": "by mistake"},
]


_HOUR = {"state": "done", "attempt": 1, "records": 12, "late": 0, "at_least": False, "rerun": False, "runs": ["r1"], "updated": 1}
INTERVALS = [
    {**_HOUR, "start": 7_200_000, "end": 10_800_000, "state": "failed", "records": None, "late": None, "error": "a mistake"},
    {
        **_HOUR,
        "start": 3_600_000,
        "end": 7_200_000,
        "attempt": 2,
        "late": 3,
        "at_least": True,
        "runs": ["r1", "r2"],
        "rerun": True,
    },
    {**_HOUR, "start": 0, "end": 3_600_000},
]


class PretendClient:
    """A server's answers; ``calls`` notes what changes something, ``failures`` has what is refused by method."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.asked: list[tuple[Any, ...]] = []
        self.failures: dict[str, RestError] = {}
        self.configs: dict[str, dict[str, str]] = {"a": dict(CONFIG)}
        self.errors: list[str] = []
        self.note: str | None = None
        self.position = ""
        self.server = "http://s"

    def __enter__(self) -> PretendClient:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if not hasattr(ConnectClient, name):
            raise AttributeError(name)

        def call(*arguments: Any, **named: Any) -> Any:
            if name in self.failures:
                raise self.failures[name]
            answer = getattr(self, f"answer_{name}", None)
            if answer is not None:
                self.asked.append((name, *arguments, *named.items()))
                return answer(*arguments)
            self.calls.append((name, *arguments, *named.items()))
            return {"alter_offsets": "altered", "reset_offsets": "reset", "set_logger": ["x", "x.y"]}.get(name)

        return call

    def answer_infos(self) -> Any:
        return {name: {"config": config} for name, config in self.configs.items()}

    def answer_config(self, name: str) -> Any:
        return self.configs[name]

    def answer_status(self, _name: str) -> Any:
        return STATUS

    def answer_application(self, _name: str) -> Any:
        return {"application": "small", "reason": "the worker has a default"}

    def answer_metrics(self, _name: str) -> Any:
        return METRICS

    def answer_statuses(self) -> Any:
        return {name: STATUS | {"name": name} for name in self.configs}

    def answer_tasks(self, _name: str) -> Any:
        return [{"id": {"connector": "a", "task": 0}, "config": {"file": "/f", "db.password": "hunter2"}}]

    def answer_topics(self, _name: str) -> Any:
        return ["t"]

    def answer_offsets(self, _name: str) -> Any:
        return OFFSETS

    def answer_offsets_and_position(self, name: str) -> Any:
        return self.answer_offsets(name), self.position

    def answer_find_offsets(self, _name: str) -> Any:
        return FOUND

    def answer_send_signal(self, _name: str, _kind: str, _data: object, signal_id: str | None) -> Any:
        return {"id": signal_id or "new", "topic": "p-signal"}

    def answer_history(self, _name: str) -> Any:
        return HISTORY

    def answer_intervals(self, _name: str) -> Any:
        return INTERVALS

    def answer_plugins(self) -> Any:
        return [{"class": "x.Y", "type": "source", "version": "1"}]

    def answer_plugin_implementation(self, _name: str, _version: str | None = None) -> Any:
        return {"note": self.note}

    def answer_plugin_config(self, _name: str) -> Any:
        return [DEFINITION]

    def answer_loggers(self) -> Any:
        return {"root": {"level": "INFO", "last_modified": None}}

    def answer_logger(self, _name: str) -> Any:
        return {"level": "WARN", "last_modified": 1}

    def answer_validate(self, _plugin: str, config: dict[str, str]) -> Any:
        values: list[dict[str, dict[str, Any]]] = [
            {"definition": {"name": key, "type": "STRING"}, "value": {"name": key, "errors": []}} for key in config
        ]
        for each in values[:1]:
            each["value"]["errors"] = self.errors
        return {"configs": values}


def out(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def write(path: Path, *configs: dict[str, str]) -> str:
    path.write_text(json.dumps(list(configs)))
    return str(path)
