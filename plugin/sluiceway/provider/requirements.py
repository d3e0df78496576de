"""Refuses operators and sensors with a sentence where Airflow is missing or too old, instead of a trace of their imports.

Imports nothing of Airflow: it is called before what would fail.
"""

from __future__ import annotations

import importlib.metadata
import re

from sluiceway.errors import MissingToolError
from sluiceway.installation import install_command

AIRFLOW = "3.0.6"
"""The oldest Airflow; the extra ``airflow`` asks pip for the same."""
SPARK_PROVIDER = "apache-airflow-providers-apache-spark"


def require_airflow(*packages: str) -> None:
    """Raise MissingToolError unless a new enough Airflow and further packages of its extra are installed."""
    airflow = installed_version("apache-airflow-core") or installed_version("apache-airflow")
    if said := missing(airflow, [package for package in packages if installed_version(package) is None]):
        raise MissingToolError(said)


def missing(airflow: str | None, absent: list[str]) -> str:
    """Return a sentence for what is missing beside an Airflow of that version, or an empty text. No I/O."""
    if airflow is None:
        return f"Operators and sensors need Apache Airflow {AIRFLOW} or newer, which is not installed. {_install()}"
    if _numbers(airflow) < _numbers(AIRFLOW):
        return (
            f"Operators and sensors need Apache Airflow {AIRFLOW} or newer; this is {airflow}. Upgrade Airflow, or run "
            "connectors beside it with 'sluiceway standalone'."
        )
    return f"Operators need the Python package {absent[0]}. {_install()}" if absent else ""


def _install() -> str:
    return f"Run: {install_command('airflow')} where Airflow's components run."


def installed_version(package: str) -> str | None:
    """Return an installed package's version."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)[:3]]
