"""One connector's DAG, made from its config. Called by the stubs in the connector bundle, when Airflow parses them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pendulum
from airflow.sdk import DAG
from airflow.utils.dates import cron_presets
from croniter import CroniterBadCronError, CroniterBadDateError, croniter
from sluiceway.config.connector import CONNECTOR_CLASS
from sluiceway.errors import ConfigError
from sluiceway.provider.dag_keys import CONTINUOUS, MICRO_BATCH, SCHEDULE, DagKeys, is_sink_config
from sluiceway.provider.naming import dag_id

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator

TAG = "sluiceway"
TASK_ID = "run"

# @continuous needs a start in the past; with catchup off its value means nothing else.
_START = pendulum.datetime(2024, 1, 1, tz="UTC")


def connector_dag(
    name: str,
    config: Mapping[str, str],
    *,
    source_operator: Callable[..., BaseOperator],
    sink_operator: Callable[..., BaseOperator],
) -> DAG:
    """Return the DAG of a connector: one run that lasts while the connector runs, or a bounded run for each schedule.

    ``config`` needs to hold only what ``dag_keys.inlined`` returns. The operators' classes are handed in because they stand
    above this package. Raises ConfigError, which Airflow shows as the import error of this connector's file.
    """
    keys = DagKeys.parse(config)
    sink = is_sink_config(config)
    _check_schedule(keys.schedule)
    dag = DAG(
        dag_id=dag_id(name),
        dag_display_name=name,
        description=f"Kafka {'sink' if sink else 'source'} connector {config.get(CONNECTOR_CLASS, '')}",
        schedule=keys.schedule,
        start_date=_START,
        catchup=False,
        max_active_runs=1,
        is_paused_upon_creation=False,
        tags=[TAG, "sink" if sink else "source", *keys.tags],
        default_args={"owner": keys.owner},
        doc_md=_documentation(name, config, keys),
    )
    options: dict[str, Any] = {} if keys.retries is None else {"retries": keys.retries}
    operator = sink_operator if sink else source_operator
    operator(task_id=TASK_ID, connector=name, dag=dag, **options)
    return dag


def _check_schedule(schedule: str | None) -> None:
    """Airflow itself looks at a schedule only later, and its message names neither the connector nor the key."""
    if schedule in (None, CONTINUOUS, "@once", *cron_presets):
        return
    try:
        croniter(schedule)
    except (CroniterBadCronError, CroniterBadDateError) as error:
        raise ConfigError(SCHEDULE, schedule, f"not a cron expression or preset that Airflow knows: {error}") from error


def _documentation(name: str, config: Mapping[str, str], keys: DagKeys) -> str:
    how = f"moves what is there at each run (`{keys.schedule}`)" if keys.mode == MICRO_BATCH else "runs until it is paused"
    return (
        f"Connector `{name}` (`{config.get(CONNECTOR_CLASS, '')}`) {how}.\n\n"
        "Its config, offsets and status are in Kafka, in Kafka Connect's format. Pausing this DAG pauses the connector, and the "
        "other way round. This DAG is made from the connector's config: change it there."
    )
