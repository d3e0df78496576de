"""Operators and sensors as DAG authors use them: mapped, with arguments that other tasks return, with values of JSON."""

from __future__ import annotations

import inspect
from datetime import datetime, timezone
from typing import Any

import pytest
from airflow.sdk import DAG, BaseOperator, task

import sluiceway.operators
import sluiceway.sensors
from sluiceway.operators import ConnectorOperator, CreateConnectorOperator
from sluiceway.operators.given_config import named_config
from sluiceway.provider.compat import AirflowException
from sluiceway.provider.lineage.assets import connector_alias
from sluiceway.sensors import ConnectorStateSensor

_CLASSES: list[Any] = [
    found
    for module in (sluiceway.operators, sluiceway.sensors)
    for found in (getattr(module, name) for name in module.__all__)
    if issubclass(found, BaseOperator)
]
_REQUIRED = {
    "connector": "c",
    "topic": "t",
    "application_name": "a",
    "config": {"name": "c", "connector.class": "FileStreamSource"},
    "offsets": [],
}
"""A value of each argument that has no default."""


def _arguments(of: Any) -> dict[str, inspect.Parameter]:
    """Return the keyword arguments of a class, those of its bases included."""
    found: dict[str, inspect.Parameter] = {}
    for each in of.__mro__:
        if each is BaseOperator:
            break
        found = {**inspect.signature(each.__init__).parameters, **found}
    return found


def _needed(of: Any) -> dict[str, Any]:
    needed = {name for name, each in _arguments(of).items() if each.kind is each.KEYWORD_ONLY and each.default is each.empty}
    return {
        name: value for name, value in _REQUIRED.items() if name in needed or (name == "connector" and name in _arguments(of))
    }


def _dag() -> DAG:
    return DAG("idioms", schedule=None, start_date=datetime(2024, 1, 1, tzinfo=timezone.utc))


@task
def earlier() -> Any:
    """Stand for a task whose result is an argument."""


_FIELDS = [(of, name) for of in _CLASSES for name in of.template_fields if name in _arguments(of)]


@pytest.mark.parametrize(("of", "name"), _FIELDS, ids=lambda each: getattr(each, "__name__", each))
def test_each_templated_argument_may_be_another_tasks_result(of: Any, name: str) -> None:
    with _dag():
        result = earlier()
        made = of(task_id="t", **{**_needed(of), name: result})
    assert getattr(made, name) is result
    assert made.upstream_task_ids == {"earlier"}


@pytest.mark.parametrize("of", _CLASSES, ids=lambda each: each.__name__)
def test_each_may_be_mapped(of: Any) -> None:
    name, value = next(iter(_needed(of).items()))
    rest = {other: given for other, given in _needed(of).items() if other != name}
    with _dag() as dag:
        of.partial(task_id="t", **rest).expand(**{name: [value]})
    [mapped] = dag.tasks
    assert mapped.inlets + mapped.outlets == []  # what Airflow does for a run, of which ``()`` makes an error
    made = mapped.unmap({name: value})
    assert getattr(made, name) == value
    expected = [connector_alias("c")] if issubclass(of, ConnectorOperator) else []
    assert made.outlets == expected


def test_a_mapped_config_and_given_outlets() -> None:
    configs = [{"name": "a", "tasks.max": 1}, {"name": "b", "errors.log.enable": True}]
    with _dag() as dag:
        ConnectorOperator.partial(task_id="t", outlets=[connector_alias("mine")]).expand(config=configs)
    [mapped] = dag.tasks
    assert [mapped.unmap({"config": each}).outlets for each in configs] == [
        [connector_alias("mine"), connector_alias(name)] for name in ("a", "b")
    ]


@pytest.mark.parametrize("name", ["{{ params.name }}", None])
def test_a_name_that_only_a_run_knows_has_no_alias(name: str | None) -> None:
    config: Any
    with _dag():
        config = earlier()
        made = ConnectorOperator(task_id="t", connector=name, config=config)
    assert made.outlets == []


@pytest.mark.parametrize(
    ("value", "text"),
    [("", ""), (1, "1"), (True, "true"), (False, "false"), (1.5, "1.5"), (-7, "-7"), ("TRUE", "TRUE"), ("{{ ds }}", "{{ ds }}")],
)
def test_a_configs_values_become_text_as_in_json(value: object, text: str) -> None:
    assert named_config("c", {"key": value}) == {"name": "c", "key": text}


def test_a_key_without_value_is_left_out() -> None:
    assert named_config("c", {"key": None}) == {"name": "c"}


@pytest.mark.parametrize("value", [[1], {"a": 1}, (1,), {1}, b"secret", object(), datetime(2024, 1, 1, tzinfo=timezone.utc)])
@pytest.mark.parametrize("of", [ConnectorOperator, CreateConnectorOperator])
def test_other_values_are_refused_when_the_dag_is_parsed_and_when_they_come_later(of: Any, value: object) -> None:
    expected = f"The value of 'key' in the config must be text, a number, or a boolean, not {type(value).__name__}."
    with pytest.raises(ValueError, match="The value of 'key'") as parsed:
        of(task_id="t", config={"name": "c", "key": value})
    assert str(parsed.value) == expected
    with pytest.raises(AirflowException) as run:
        named_config("c", {"key": value})
    assert str(run.value) == expected


@pytest.mark.parametrize("config", [None, {}, {"name": None}, {"name": ""}])
@pytest.mark.parametrize("connector", [None, ""])
def test_without_a_name_it_is_asked_for(connector: str | None, config: dict[str, Any] | None) -> None:
    with pytest.raises(ValueError, match="needs the connector's name"):
        ConnectorOperator(task_id="t", connector=connector, config=config)
    with pytest.raises(AirflowException, match="needs the connector's name"):
        named_config(connector, config)


@pytest.mark.parametrize("config", [7, ["name"], True])
def test_a_result_that_is_no_config_is_refused(config: Any) -> None:
    with pytest.raises(AirflowException, match="'config' must be a dict or the path of a file, not"):
        named_config("c", config)


@pytest.mark.parametrize("states", ["RUNNING", ["RUNNING"], ("RUNNING",)])
def test_one_state_may_be_given_as_text(states: Any) -> None:
    assert ConnectorStateSensor(task_id="t", connector="c", states=states).condition().states == ("RUNNING",)


@pytest.mark.parametrize("states", ["RUNING", ["RUNNING", "paused"]])
def test_an_unknown_state_is_refused_when_the_dag_is_parsed(states: Any) -> None:
    with pytest.raises(ValueError, match="is not a valid State"):
        ConnectorStateSensor(task_id="t", connector="c", states=states)


def test_states_of_another_task_are_checked_when_they_are_known() -> None:
    result: Any
    with _dag():
        result = earlier()
        sensor = ConnectorStateSensor(task_id="t", connector="c", states=result)
    assert sensor.states is result
    sensor.states = ["RUNING"]
    with pytest.raises(ValueError, match="is not a valid State"):
        sensor.condition()
