"""Checks the health of one Airflow component: exits with 0 if the API server reports it as healthy. Needs only Python.

Usage: healthy.py COMPONENT [URL], for example ``healthy.py dag_processor http://airflow-api-server:8080``.
"""

from __future__ import annotations

import json
import sys
import urllib.request

_PATH = "/api/v2/monitor/health"


def main(component: str, server: str = "http://localhost:8080") -> int:
    """Return 0 if a component (``metadatabase``, ``scheduler``, ``dag_processor``, ``triggerer``) is healthy, else 1."""
    try:
        with urllib.request.urlopen(server.rstrip("/") + _PATH, timeout=5) as answer:  # noqa: S310 (a fixed address)
            status = json.load(answer)[component]["status"]
    except (OSError, ValueError, KeyError) as error:
        print(f"{component}: {error!r}")  # noqa: T201 (docker inspect shows it)
        return 1
    print(f"{component}: {status}")  # noqa: T201
    return 0 if status == "healthy" else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
