"""The contract of source and sink connectors."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar

import pytest

from sluiceway.api import Connector, Task
from sluiceway.config.definition import ConfigDef, ValidatedValue
from sluiceway.runtime.memory import MemoryConnectorContext
from sluiceway.testing.checks import (
    breach,
    check_documented,
    check_found_by_name,
    check_pickles,
    logged,
    no_error,
    required_keys,
    secrets_of,
)
from sluiceway.testing.running import full_config

_TASKS = (1, 2, 5)


class ConnectorContract:
    """Tests of a connector: options, validation, task configs, start and stop."""

    connector_class: ClassVar[type[Connector]]

    @pytest.fixture
    def config(self) -> dict[str, str]:
        """Return a valid config of the connector, without the common keys (name, connector.class and so on)."""
        raise NotImplementedError(
            "Override the fixture config: a @pytest.fixture that returns a valid config with which the connector can run."
        )

    def bad_configs(self, config: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
        """Yield invalid configs; by default those without one of the required options."""
        for key in required_keys(self.definition()):
            yield {name: value for name, value in config.items() if name != key.name}

    def definition(self) -> ConfigDef:
        return self.connector_class.config_def()

    def new_context(self, config: Mapping[str, str]) -> Any:
        """Return a context for a task with this config."""
        raise NotImplementedError

    def test_executors_find_the_classes_by_their_names(self) -> None:
        check_found_by_name(self.connector_class)
        check_found_by_name(self.connector_class.task_class)

    def test_the_version_is_a_text(self) -> None:
        for cls in (self.connector_class, self.connector_class.task_class):
            version = cls.version()
            if not (isinstance(version, str) and version):
                breach(
                    f"{cls.__name__}.version()",
                    f"returned {version!r}",
                    'Return a string such as "1.0.0"',
                )

    def test_every_option_is_documented(self) -> None:
        check_documented(self.connector_class.__name__, self.definition())

    def test_a_valid_config_is_found_valid(self, config: dict[str, str]) -> None:
        errors = {name: result.errors for name, result in self._validate(config).items() if result.errors}
        if errors:
            breach(self._where("validate"), f"reports errors in the sample config: {errors}", "Correct the one or the other")

    def test_a_missing_required_option_is_reported(self, config: dict[str, str]) -> None:
        for key in required_keys(self.definition()):
            rest = {name: value for name, value in config.items() if name != key.name}
            result = self._validate(rest).get(key.name)
            if result is None or not result.errors:
                advice = "Return the results of config_def().validate(config), with your own errors added"
                breach(self._where("validate"), f"reports no error if {key.name} is missing, which is required", advice)

    def test_validation_reports_and_does_not_raise(self, config: dict[str, str]) -> None:
        self._validate({})
        for key in self.definition():
            for odd in ("", " ", "not-a-number", "-1"):
                self._validate({**config, key.name: odd})

    def test_there_are_one_to_max_tasks_with_configs_of_texts(self, config: dict[str, str]) -> None:
        for max_tasks in _TASKS:
            connector = self._started(config, max_tasks)
            try:
                configs = connector.task_configs(max_tasks)
                again = connector.task_configs(max_tasks)
            finally:
                connector.stop()
            self._check_task_configs(configs, max_tasks)
            if [dict(one) for one in again] != [dict(one) for one in configs]:
                advice = "Return the same configs while nothing has changed: each difference restarts the tasks"
                breach(self._where("task_configs"), "returned other configs at the second call", advice)

    def test_the_config_is_left_as_it_was(self, config: dict[str, str]) -> None:
        given = full_config(self.connector_class, config)
        before = dict(given)
        connector = self._new()
        connector.start(given)
        try:
            for task_config in connector.task_configs(2):
                with suppress(TypeError):
                    task_config["changed.by.the.runtime"] = "x"  # type: ignore[index]
            shared = "changed.by.the.runtime" in given
        finally:
            connector.stop()
        given.pop("changed.by.the.runtime", None)
        if given != before or shared:
            breach(self._where("start"), "changed or returned the mapping that it was given", "Keep a copy: dict(config)")

    def test_stopping_twice_is_harmless(self, config: dict[str, str]) -> None:
        connector = self._started(config)
        with no_error(self._where("stop"), "Let stop() do nothing at the second call"):
            connector.stop()
            connector.stop()

    def test_stopping_after_a_failed_start_is_harmless(self, config: dict[str, str]) -> None:
        advice = "Let stop() release only what start() has acquired: it is also called after a failed start"
        for bad in [{}, *self.bad_configs(config)]:
            connector, task = self._new(), self._new_task(bad)
            with suppress(Exception):
                connector.start(full_config(self.connector_class, bad))
            with no_error(self._where("stop"), advice):
                connector.stop()
            with suppress(Exception):
                task.start(bad)
            with no_error(f"{type(task).__name__}.stop()", advice):
                task.stop()

    def test_errors_pickle(self, config: dict[str, str]) -> None:
        for bad in self.bad_configs(config):
            connector, task = self._new(), self._new_task(bad)
            for one, given in ((connector, full_config(self.connector_class, bad)), (task, bad)):
                try:
                    one.start(given)
                except Exception as error:  # noqa: BLE001 (whatever it raises has to pickle)
                    check_pickles(f"{type(one).__name__}.start()", error)
                finally:
                    one.stop()

    def test_secrets_are_not_shown(self, config: dict[str, str]) -> None:
        secrets = secrets_of(self.definition(), config)
        if not secrets:
            return
        with logged() as texts:
            results = self._validate({**config, **dict.fromkeys(self._others(secrets), "not-a-number")})
            texts += [f"validate(): {results!r}"]
            connector, task = self._new(), self._new_task(config)
            for one, given in ((connector, full_config(self.connector_class, config)), (task, config)):
                try:
                    one.start(given)
                    texts += [f"repr(): {one!r}", f"str(): {one}"]
                except Exception as error:  # noqa: BLE001 (its text must not contain a secret either)
                    texts.append(f"{type(error).__name__}: {error}")
                finally:
                    one.stop()
        for name, secret in secrets.items():
            for text in texts:
                if secret in text:
                    shown = text.replace(secret, "<the secret>")
                    breach(
                        self.connector_class.__name__,
                        f"shows the secret {name}: {shown}",
                        "Show only its name",
                    )

    def _others(self, secrets: Mapping[str, str]) -> list[str]:
        return [key.name for key in self.definition() if key.name not in secrets]

    def _check_task_configs(self, configs: Sequence[Mapping[str, str]], max_tasks: int) -> None:
        where = f"{self.connector_class.__name__}.task_configs({max_tasks})"
        if not 1 <= len(configs) <= max_tasks:
            breach(where, f"returned {len(configs)} configs", f"Return 1 to {max_tasks} configs, fewer if there is less work")
        for config in configs:
            wrong = [name for name, value in config.items() if not (isinstance(name, str) and isinstance(value, str))]
            if wrong:
                breach(where, f"returned keys or values that are not strings: {wrong}", "Use str, because Kafka stores them")
            try:
                back = json.loads(json.dumps(dict(config))), pickle.loads(pickle.dumps(dict(config)))  # noqa: S301 (our own)
            except (TypeError, ValueError, AttributeError, pickle.PicklingError) as error:
                breach(where, f"returned a config that cannot be stored ({error})", "Return plain dicts of str", error)
            if back != (config, config):
                breach(where, "returned a config that JSON or pickle changes", "Return plain dicts of str")

    def _validate(self, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        advice = "Add errors to the results instead: the REST API shows all of them to the user"
        with no_error(self._where("validate"), advice):
            return self.connector_class.validate(config)
        raise AssertionError  # unreachable; for the type checker

    def _new(self) -> Connector:
        connector = self.connector_class()
        connector.initialize(MemoryConnectorContext())
        return connector

    def _new_task(self, config: Mapping[str, str]) -> Task:
        task = self.connector_class.task_class()
        initialize: Any = task.initialize  # type: ignore[attr-defined]  # both kinds of task have it, with their own context
        initialize(self.new_context(config))
        return task

    def _started(self, config: Mapping[str, str], tasks_max: int = 1) -> Connector:
        connector = self._new()
        with no_error(self._where("start"), "Let the fixture config return a config with which the connector can start"):
            connector.start(full_config(self.connector_class, config, tasks_max))
        return connector

    def _where(self, method: str) -> str:
        return f"{self.connector_class.__name__}.{method}()"
