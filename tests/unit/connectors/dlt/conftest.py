"""Keeps dlt from importing Airflow, and from telling how it is used, as the product does for its processes."""

import os

os.environ |= {"PROVIDERS__ENABLE_AIRFLOW_SECRETS": "false", "RUNTIME__DLTHUB_TELEMETRY": "false"}
