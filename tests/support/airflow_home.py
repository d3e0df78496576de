"""Keeps Airflow, when a test imports it, away from the developer's own installation."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile


def isolate_airflow() -> None:
    """Set AIRFLOW_HOME and settings to a folder of this process. Call it from a conftest, before anything imports Airflow."""
    if "SLUICEWAY_TEST_AIRFLOW" in os.environ:
        return
    home = tempfile.mkdtemp(prefix="sluiceway-airflow-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    os.environ.update(
        {
            "SLUICEWAY_TEST_AIRFLOW": home,
            "AIRFLOW_HOME": home,
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
            "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH": f"{home}/bundles",
            "AIRFLOW__API_AUTH__JWT_SECRET": "a secret for tests only, long enough for the algorithm that signs with it",
        }
    )
