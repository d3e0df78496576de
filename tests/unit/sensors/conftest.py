"""These tests import Airflow."""

from __future__ import annotations

from support.airflow_home import isolate_airflow

isolate_airflow()
