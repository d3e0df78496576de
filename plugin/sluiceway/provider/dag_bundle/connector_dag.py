"""Creates the DAG of a connector, or of a shared application. The bundle's stubs call it when Airflow parses them."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

import pendulum
from airflow.sdk import DAG, Asset, AssetAll, AssetAny, AssetWatcher
from airflow.triggers.base import BaseEventTrigger, StartTriggerArgs

from sluiceway.config.connector import CONNECTOR_CLASS, TOPICS, TOPICS_REGEX
from sluiceway.config.schedules import CONTINUOUS, LONG_RUNNING, NO_CRON, SCHEDULE
from sluiceway.discovery import plugin_named
from sluiceway.errors import ConfigError, ConnectError
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.provider.compat import CronDataIntervalTimetable
from sluiceway.provider.dag_bundle.dag_docs import application_page, connector_page
from sluiceway.provider.dag_bundle.dag_ids import application_dag_id, dag_id
from sluiceway.provider.dag_bundle.dag_keys import DagKeys, is_sink_config
from sluiceway.provider.lineage.assets import connector_alias
from sluiceway.provider.settings import read_settings
from sluiceway.provider.triggers import ChangeTrigger, ConditionTrigger, LagTrigger
from sluiceway.provider.triggers.conditions import DriverEndedCondition

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator


TAG = "sluiceway"
TASK_ID = "run"

# @continuous requires a start date in the past. Without catch-up its value has no other effect.
_START = pendulum.datetime(2024, 1, 1, tz="UTC")
_APPLICATION_WEIGHT = 1000  # its connectors' tasks, which wait for it, must not start before it


def connector_dag(
    name: str,
    config: Mapping[str, str],
    *,
    source_operator: Callable[..., BaseOperator],
    sink_operator: Callable[..., BaseOperator],
    application: str | None = None,
    is_paused_upon_creation: bool = False,
) -> DAG:
    """Return the DAG of a connector: one continuous run for a long-running connector, bounded runs for a micro-batch.

    Args:
        name: the connector's name.
        config: its class, its topics if it is a sink, and its ``airflow.*`` keys.
        source_operator: the operator class for a source. Passed in, because the layer of operators is above this one.
        sink_operator: the operator class for a sink.
        application: the shared application that runs it; None for one of its own.
        is_paused_upon_creation: whether a new DAG is paused, so that Airflow creates no run before the pause sync pauses it.

    Raises:
        ConfigError: an ``airflow.*`` key is invalid. Airflow shows it as the import error of the connector's file.
    """
    _find_plugins(config)
    keys = DagKeys.parse(config)
    sink = is_sink_config(config)
    dag = DAG(
        dag_id=dag_id(name),
        dag_display_name=name,
        description=f"Kafka {'sink' if sink else 'source'} connector {config.get(CONNECTOR_CLASS, '')}",
        schedule=_schedule(name, keys),
        start_date=keys.start_date or _START,
        catchup=keys.catchup,
        max_active_runs=keys.max_active_runs,
        is_paused_upon_creation=is_paused_upon_creation,
        tags=[TAG, "sink" if sink else "source", *keys.tags],
        default_args={"owner": keys.owner},
        doc_md=connector_page(name, config, keys, application),
    )
    options: dict[str, Any] = {} if keys.retries is None else {"retries": keys.retries}
    if keys.callbacks:
        options |= callbacks(keys.callbacks, read_settings().callbacks)
    operator = sink_operator if sink else source_operator
    task = _literal(operator(task_id=TASK_ID, connector=name, dag=dag, **options))
    if connector_alias(name) not in task.outlets:  # the operator takes a name with braces for a template
        task.add_outlets([connector_alias(name)])
    if application is not None and keys.mode == LONG_RUNNING:
        _start_in_triggerer(task, name)
    return dag


def _find_plugins(config: Mapping[str, str]) -> None:
    """Find the Java plugins of ``plugin.path`` for a class that has topics and is not Python's: it may be a source's.

    Without a worker's file, or with one that cannot be read, such a class counts as a sink.
    """
    has_topics = TOPICS in config or TOPICS_REGEX in config
    if has_topics and plugin_named("sluiceway.connectors", config.get(CONNECTOR_CLASS, "")) is None:
        with contextlib.suppress(ConnectError):
            use_plugin_path(read_settings().worker().raw)


def _start_in_triggerer(task: BaseOperator, connector: str) -> None:
    """Let the scheduler defer the task at once: it would do nothing else in a worker's process, which costs half a second of CPU.

    It resumes in ``ConnectorOperator.after_wait``.
    """
    settings = read_settings()
    condition = DriverEndedCondition(connector, hosted=True)
    trigger = ConditionTrigger.of(condition, str(settings.worker_file()), None, settings.sensor_interval)
    path, arguments = trigger.serialize()
    task.start_trigger_args = StartTriggerArgs(path, "after_wait", arguments, {"hosted": True})
    task.start_from_trigger = True


def application_dag(name: str, _conf: Mapping[str, str] | None = None, *, operator: Callable[..., BaseOperator]) -> DAG:
    """Return the DAG of a shared Spark application: one continuous run.

    Its task reads the Spark settings. Those in a file that 0.1.0 has written, until it is replaced, are masked.
    """
    dag = DAG(
        dag_id=application_dag_id(name),
        dag_display_name=f"{name} (shared application)",
        description="Spark application that connectors share",
        schedule=CONTINUOUS,
        start_date=_START,
        catchup=False,
        max_active_runs=1,
        is_paused_upon_creation=False,
        tags=[TAG, "application"],
        doc_md=application_page(name),
    )
    _literal(operator(task_id=TASK_ID, application_name=name, priority_weight=_APPLICATION_WEIGHT, dag=dag))
    return dag


def _literal(task: BaseOperator) -> BaseOperator:
    """Take names and settings as they are.

    They come from the config topic. As templates they would show Airflow's variables and connections to everybody who may
    create a connector, and ``{{ 'orders' }}`` would run the connector of another team.
    """
    task.template_fields = ()
    return task


def _schedule(name: str, keys: DagKeys) -> Any:
    if keys.assets:
        try:
            assets = [Asset(uri) for uri in keys.assets]
        except ValueError as error:  # a scheme may have rules of its own
            raise ConfigError(SCHEDULE, ", ".join(keys.assets), str(error)) from error
        return AssetAny(*assets) if keys.any_asset else AssetAll(*assets)
    if keys.lag is not None:
        settings = read_settings()
        return _watched("lag", name, LagTrigger(name, keys.lag, str(settings.worker_file()), settings.sensor_interval))
    if keys.on_change:
        return _watched("change", name, ChangeTrigger(name, str(read_settings().worker_file())))
    if keys.schedule is None or keys.schedule in NO_CRON:
        return keys.schedule
    # A plain cron expression gives an empty data interval, but ${airflow:run:...} and backfills need its length.
    return CronDataIntervalTimetable(keys.schedule, timezone="UTC")


def _watched(kind: str, name: str, trigger: BaseEventTrigger) -> list[Asset]:
    """Return the asset whose events a trigger makes in the triggerer."""
    watcher = AssetWatcher(name=f"{kind}-{dag_id(name)}", trigger=trigger)
    return [Asset(f"sluiceway://{kind}/{dag_id(name)}", watchers=[watcher])]


def callbacks(named: Mapping[str, Collection[str]], allowed: Collection[str]) -> dict[str, list[Callable[..., Any]]]:
    """Return an operator's callback arguments, such as ``on_failure_callback``.

    Args:
        named: by config key (``airflow.on.failure.callback``), the functions as ``module.function``.
        allowed: modules that may be named; their submodules are allowed too. A connector's config must not be able to call
            arbitrary code.

    Raises:
        ConfigError: a module is not allowed, or a function cannot be imported.
    """
    return {
        key.partition(".")[2].replace(".", "_"): [_function(key, each, allowed) for each in names] for key, names in named.items()
    }


def _function(key: str, name: str, allowed: Collection[str]) -> Callable[..., Any]:
    module, _, attribute = name.rpartition(".")
    if not any(module == each or module.startswith(f"{each}.") for each in allowed):
        raise ConfigError(key, name, "its module is not among those in Airflow's [sluiceway] callbacks")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(key, name, f"cannot be imported where DAGs are parsed: {error}") from error
    if not callable(found):
        raise ConfigError(key, name, "must be a function")
    function: Callable[..., Any] = found
    return function
