"""Encodes connector names as DAG ids, and DAG ids as file names. No I/O.

Connect allows almost any character in a name; Airflow allows only letters, digits, dashes, dots and underscores, which are
unchanged. Any other byte becomes ``_xHH``, and an underscore before ``xHH`` becomes ``_x5F``.
"""

from __future__ import annotations

import functools
import re

from sluiceway.errors import ConfigError

LONGEST_DAG_ID = 250

APPLICATION_PREFIX = "application~"
"""Begins the names of shared applications' DAGs, and so of no connector that has a generated one."""

# Airflow refuses two dots in a row (path traversal), so the second one is escaped.
_TO_ESCAPE = re.compile(r"[^A-Za-z0-9_.\-]|_(?=x[0-9A-F]{2})|(?<=\.)\.")
_ESCAPED = re.compile(rb"_x([0-9A-F]{2})")

# The dash keeps a connector named "json" from being importable as a module of that name.
_FILE_PREFIX = "connector-"


@functools.lru_cache(maxsize=16_384)  # a request for the list needs those of all connectors
def dag_id(connector: str) -> str:
    """Return the id of a connector's generated DAG; raises ConfigError if it exceeds Airflow's limit of 250 characters."""
    encoded = _TO_ESCAPE.sub(lambda match: "".join(f"_x{byte:02X}" for byte in match[0].encode()), connector)
    if len(encoded) > LONGEST_DAG_ID:
        why = f"Airflow allows {LONGEST_DAG_ID} characters in a DAG id, this name needs {len(encoded)}"
        raise ConfigError("name", f"{connector[:40]}...", why)
    return encoded


def application_dag_id(application: str) -> str:
    """Return the id of the DAG of a shared Spark application; raises ConfigError like ``dag_id``."""
    return dag_id(f"{APPLICATION_PREFIX}{application}")


def connector_name(dag: str) -> str:
    """Return the connector's name for the id of a generated DAG: the inverse of ``dag_id``."""
    return _ESCAPED.sub(lambda match: bytes([int(match[1], 16)]), dag.encode()).decode(errors="replace")


def stub_file(dag: str) -> str:
    """Return the name of the file in the bundle that defines this DAG."""
    return f"{_FILE_PREFIX}{dag}.py"


def is_application_file(name: str) -> bool:
    """Return whether a file in the bundle defines the DAG of a shared application."""
    return name.startswith(stub_file(application_dag_id("")).removesuffix(".py"))


def is_stub_file(name: str) -> bool:
    """Return whether the bundle may delete a file of this name."""
    return name.startswith(_FILE_PREFIX) and name.endswith(".py")
