"""A Connect cluster in memory, with the requests that a migration sends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sluiceway.config.connector import without_marks
from sluiceway.rest.client import RestError

PYTHON_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
JAVA_SOURCE = "io.example.OrdersConnector"


class PretendCluster:
    """Connectors run at once. ``before_write`` is called with each request that changes something, before it takes effect."""

    def __init__(self, *, sluiceway: bool = False, version: str = "4.3.0", kafka: str = "k") -> None:
        self.is_sluiceway = sluiceway
        self.server = "http://ours" if sluiceway else "http://user:pw@connect:8083"
        self._root = {"version": version, "commit": "sluiceway-1" if sluiceway else "abc", "kafka_cluster_id": kafka}
        self.configs: dict[str, dict[str, str]] = {}
        self.states: dict[str, str] = {}
        self.stored: dict[str, list[dict[str, Any]]] = {}
        self.writes: list[tuple[str, str]] = []
        self.before_write: Callable[[str, str], None] = lambda _verb, _name: None
        self.start_fails = False
        self.drivers: Iterator[str | None] = iter(())
        """The driver in the next responses about connectors; in later ones there is one."""
        self.worker_id = "ours:8083" if sluiceway else "connect:8083"
        self.implementations: dict[str, dict[str, Any]] = {
            PYTHON_SOURCE: {"language": "python", "version": "4.3.0", "location": None}
        }
        self.errors: list[str] = []
        self.undefined: set[str] = set()
        """Keys that no validation lists."""
        self.passwords: dict[str, list[str]] = {}
        """The keys of type password of a class."""

    def add(self, name: str, state: str = "RUNNING", **config: str) -> None:
        keys = {"connector.class": PYTHON_SOURCE, "key.converter": PYTHON_SOURCE, "value.converter": PYTHON_SOURCE}
        self.configs[name] = {**keys, **config, "name": name}
        self.states[name] = state
        self.stored[name] = [{"partition": {"f": name, "a": 1}, "offset": {"position": 7}}]

    def __enter__(self) -> PretendCluster:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def at(self, server: str, timeout: float) -> PretendCluster:
        assert timeout > 0
        assert server == f"http://{self.worker_id}"
        return self

    # Requests.

    def plugin_config(self, class_name: str) -> list[dict[str, Any]]:
        if class_name not in self.passwords:
            raise RestError(404, "no such class")
        return [{"name": name, "type": "PASSWORD"} for name in self.passwords[class_name]]

    def root(self) -> dict[str, Any]:
        return self._root

    def connectors(self) -> list[str]:
        return list(self.configs)

    def infos(self) -> dict[str, Any]:
        return {name: {"name": name, "config": config, "type": "source"} for name, config in self.configs.items()}

    def statuses(self) -> dict[str, Any]:
        return {name: self._status(name) for name in self.configs}

    def info(self, name: str) -> dict[str, Any]:
        self._existing(name)
        tasks = [] if self.states[name] == "STOPPED" else [{"connector": name, "task": 0}]
        return {"name": name, "config": self.configs[name], "type": "source", "tasks": tasks}

    def config(self, name: str) -> dict[str, str]:
        self._existing(name)
        return dict(self.configs[name])

    def status(self, name: str) -> dict[str, Any]:
        return self._status(name)

    def _status(self, name: str) -> dict[str, Any]:
        self._existing(name)
        state = self.states[name]
        task = {"id": 0, "state": state, "worker_id": self.worker_id}
        if state == "FAILED":
            task["trace"] = "Error: boom\n\tat x"
        tasks = [] if state == "STOPPED" else [task]
        connector = {"state": "RUNNING" if state == "FAILED" else state, "worker_id": self.worker_id}
        return {"name": name, "connector": connector, "tasks": tasks}

    def task_status(self, name: str, task: int) -> dict[str, Any]:
        found = {each["id"]: each for each in self._status(name)["tasks"]}
        if task not in found:
            raise RestError(404, "no task")
        return found[task]

    def create(self, name: str, config: Mapping[str, str], initial_state: str) -> None:
        self._write("create", name)
        if name in self.configs:
            raise RestError(409, "exists")
        self.configs[name] = {**config, "name": name}
        self.states[name] = initial_state
        self.stored.setdefault(name, [])

    def put_config(self, name: str, config: Mapping[str, str]) -> None:
        self._write("put_config", name)
        same = self.is_sluiceway and without_marks(config) == without_marks(self.configs[name])
        assert same or self.states[name] == "STOPPED", "a move changes no connector that runs"
        self.configs[name] = dict(config)

    def delete(self, name: str) -> None:
        self._write("delete", name)
        del self.configs[name]

    def stop(self, name: str) -> None:
        self._change("stop", name, "STOPPED")

    def pause(self, name: str, *, moving: bool) -> None:
        assert moving == str(self._root["commit"]).startswith("sluiceway-")
        self._change("pause", name, "PAUSED")

    def resume(self, name: str, *, moving: bool) -> None:
        assert moving == str(self._root["commit"]).startswith("sluiceway-")
        self._change("resume", name, "FAILED" if self.start_fails else "RUNNING")

    def application(self, name: str) -> dict[str, Any]:
        self._existing(name)
        if not str(self._root["commit"]).startswith("sluiceway-"):
            raise RestError(404, "no such request")
        return {"application": None, "reason": "", "driver": next(self.drivers, "host:1")}

    def offsets(self, name: str) -> list[dict[str, Any]]:
        self._existing(name)
        return self.stored[name]

    def alter_offsets(self, name: str, offsets: Sequence[Mapping[str, Any]]) -> None:
        self._write("alter_offsets", name)
        assert self.states[name] == "STOPPED"
        left = [each for each in self.stored[name] if each["partition"] not in [edit["partition"] for edit in offsets]]
        self.stored[name] = left + [dict(edit) for edit in offsets if edit["offset"] is not None]

    def plugins(self, *, connectors_only: bool) -> list[dict[str, Any]]:
        assert not connectors_only
        return [{"class": name, "type": "source", "version": each["version"]} for name, each in self.implementations.items()]

    def plugin_implementation(self, plugin: str, version: str | None = None) -> dict[str, Any]:
        if version is not None:
            raise RestError(400, "no such version")
        if plugin not in self.implementations:
            raise RestError(404, "unknown plugin")
        return {"class": plugin, **self.implementations[plugin]}

    def validate(self, _plugin: str, config: Mapping[str, str]) -> dict[str, Any]:
        values: list[dict[str, dict[str, Any]]] = [
            {"definition": {"name": key, "type": "STRING"}, "value": {"name": key, "errors": []}}
            for key in config
            if key not in self.undefined
        ]
        values[0]["value"]["errors"] = self.errors
        return {"configs": values}

    def _change(self, verb: str, name: str, state: str) -> None:
        self._write(verb, name)
        self._existing(name)
        self.states[name] = state

    def _write(self, verb: str, name: str) -> None:
        self.before_write(verb, name)
        self.writes.append((verb, name))

    def _existing(self, name: str) -> None:
        if name not in self.configs:
            raise RestError(404, f"Connector {name} not found")
