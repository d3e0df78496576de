"""Reads the settings that an administrator or a properties file gives to spark-submit.

spark-submit prefers ``--conf`` to them, so a default that is passed as ``--conf`` must not override them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from sluiceway.config.properties import read_properties

_DEFAULTS = "spark-defaults.conf"
_FIND_HOME = "find_spark_home.py"


def read_spark_defaults(
    environment: Mapping[str, str], *, properties_file: str | None = None, binary: str = "spark-submit"
) -> dict[str, str]:
    """Return the ``spark.*`` settings that spark-submit reads from a file; empty if there is none.

    Raises ConfigError if the file cannot be read: spark-submit would fail, too.

    Args:
        environment: spark-submit's environment variables.
        properties_file: ``--properties-file``, in whose presence Spark ignores spark-defaults.conf.
        binary: spark-submit's name or path, by which Spark's folder is found without ``SPARK_HOME``.
    """
    file = Path(properties_file) if properties_file else _defaults_file(environment, binary)
    if file is None or not file.is_file():
        return {}
    found = read_properties(file)
    return {key: value.strip() for key, value in found.items() if key.startswith("spark.")}


def spark_home(environment: Mapping[str, str], binary: str = "spark-submit") -> Path | None:
    """Return the folder of the Spark that spark-submit uses, found as its own script does; None if it is unknown."""
    if environment.get("SPARK_HOME"):
        return Path(environment["SPARK_HOME"])
    found = shutil.which(binary, path=environment.get("PATH", os.defpath))
    if found is None:
        return None
    folder = Path(found).parent
    if not (folder / _FIND_HOME).exists():
        return folder.parent
    return next(iter(sorted(folder.parent.glob("lib/python*/*-packages/pyspark"))), None)  # pip installed it


def _defaults_file(environment: Mapping[str, str], binary: str) -> Path | None:
    if environment.get("SPARK_CONF_DIR"):
        return Path(environment["SPARK_CONF_DIR"]) / _DEFAULTS
    home = spark_home(environment, binary)
    return home / "conf" / _DEFAULTS if home else None
