"""Renders the chart in docker/helm with the real helm. Airflow's chart, which cannot be downloaded, is an empty one here."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from support.clusters.kubernetes_api import KubernetesApi, Object
from support.clusters.kubernetes_build import HELM_CLI

#: The service account that Airflow's own chart would create.
AIRFLOW_ACCOUNT = "airflow-worker"

CHART = Path(__file__).parents[3] / "docker" / "helm"

#: The keys of Airflow's chart that our values use, with their types in its values.schema.json (version 1.19, Airflow 3.0.5).
_AIRFLOW_VALUES: Mapping[str, Mapping[str, Any]] = {
    "airflowVersion": {"type": "string"},
    "defaultAirflowRepository": {"type": "string"},
    "defaultAirflowTag": {"type": "string"},
    "executor": {"type": "string"},
    "scheduler": {
        "type": "object",
        "properties": {
            "serviceAccount": {
                "type": "object",
                "properties": {"create": {"type": "boolean"}, "name": {"type": ["string", "null"]}},
                "additionalProperties": False,
            }
        },
        "additionalProperties": False,
    },
    "env": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "value": {"type": "string"}},
            "required": ["name", "value"],
            "additionalProperties": False,
        },
    },
    "extraEnvFrom": {"type": ["null", "string"]},
    "volumes": {"type": "array"},
    "volumeMounts": {"type": "array"},
    "global": {"type": "object"},
}


def rendered(folder: Path, namespace: str, values: Mapping[str, Any]) -> list[Object]:
    """Return the objects that ``helm template`` makes of the chart in a namespace, with ``values`` over its own."""
    chart = folder / "chart"
    shutil.copytree(CHART, chart)
    airflow = chart / "charts" / "airflow"
    airflow.mkdir(parents=True)
    (airflow / "Chart.yaml").write_text("apiVersion: v2\nname: airflow\nversion: 1.19.0\n")
    schema = {"type": "object", "properties": _AIRFLOW_VALUES, "additionalProperties": False}
    (airflow / "values.schema.json").write_text(json.dumps(schema))
    given = folder / "values.yaml"
    given.write_text(yaml.safe_dump(dict(values)))
    command = [str(HELM_CLI.path), "template", "test", str(chart), "--namespace", namespace, "--values", str(given)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [each for each in yaml.safe_load_all(text) if each]


def install(api: KubernetesApi, namespace: str, folder: Path, values: Mapping[str, Any], spark_conf: Path) -> None:
    """Create the chart's objects, and write Spark's settings into ``spark_conf``, as mounted into Airflow's containers."""
    account = {"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": AIRFLOW_ACCOUNT}}
    for made in [account, *rendered(folder, namespace, values)]:
        api.create(made, namespace)
        if made["metadata"]["name"] == "sluiceway-spark":
            for name, content in made["data"].items():
                (spark_conf / name).write_text(content.replace("/etc/spark", str(spark_conf)))
