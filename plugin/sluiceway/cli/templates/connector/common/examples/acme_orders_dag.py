"""Runs the connectors in Airflow until the DAG is paused.

Install the package for Airflow, and copy this file and the .properties files beside it into the DAGs folder.
"""

from pathlib import Path

import pendulum
from airflow.sdk import DAG
#if both
from sluiceway.operators import SinkConnectorOperator, SourceConnectorOperator
#end
#if source-alone
from sluiceway.operators import SourceConnectorOperator
#end
#if sink-alone
from sluiceway.operators import SinkConnectorOperator
#end

FOLDER = Path(__file__).parent

with DAG(
    dag_id="acme-orders",
    schedule="@continuous",
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,
):
#if source
    SourceConnectorOperator(task_id="source", config=str(FOLDER / "source.properties"))
#end
#if sink
    SinkConnectorOperator(task_id="sink", config=str(FOLDER / "sink.properties"))
#end
