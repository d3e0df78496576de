"""Makes the connectors what the files in a git folder say, every five minutes.

Files that were changed on the branch are applied, and what somebody changed by hand is put back; the task's log shows the
differences. Connectors that none of the files contains are left alone.

``SLUICEWAY_EXAMPLE_GIT_FOLDER``  a folder in a clone, on each Airflow worker; default ``connectors`` in AIRFLOW_HOME
"""

from __future__ import annotations

import logging
import os
import subprocess
from pathlib import Path

import pendulum
from airflow.sdk import DAG, task

log = logging.getLogger(__name__)

_HOME = Path(os.environ.get("AIRFLOW_HOME") or "~/airflow").expanduser()
_FOLDER = os.environ.get("SLUICEWAY_EXAMPLE_GIT_FOLDER", str(_HOME / "connectors"))

with DAG(
    dag_id="example_connectors_from_git",
    description="Makes the connectors what the files in a git folder say",
    schedule="*/5 * * * *",
    start_date=pendulum.datetime(2024, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=True,
    tags=["sluiceway", "example"],
    doc_md=__doc__,
) as dag:

    @task
    def pull(folder: str) -> str:
        """Fast-forward the clone to its branch. Return the commit."""
        subprocess.run(["git", "-C", folder, "pull", "--ff-only", "--quiet"], check=True)
        head = ["git", "-C", folder, "rev-parse", "HEAD"]
        return subprocess.run(head, check=True, capture_output=True, text=True).stdout.strip()

    @task
    def apply(folder: str) -> dict[str, str]:
        """Apply the files through the REST API of the connection ``kafka_connect_default``. Return the actions by connector."""
        from sluiceway.cli.apply import described, make_change, plan
        from sluiceway.provider.hooks.kafka_connect import KafkaConnectHook

        with KafkaConnectHook().get_conn() as api:
            changes = [change for change in plan([Path(folder)], api) if change.action != "keep"]
            for change, text in zip(changes, described(api, changes), strict=True):
                log.info("%s", text)
                make_change(api, change)
        return {change.name: change.action for change in changes}

    pull(_FOLDER) >> apply(_FOLDER)
