"""Health check of one Airflow component: exits with 0 if the API server reports it to be well. Needs nothing but Python.

Usage: healthy.py COMPONENT [URL], for example ``healthy.py dag_processor http://airflow-api-server:8080``.
"""

from __future__ import annotations

import json
import sys
import urllib.request

_PATH = "/api/v2/monitor/health"


def main(component: str, server: str = "http://localhost:8080") -> int:
    """Return 0 for a component (``metadatabase``, ``scheduler``, ``dag_processor``, ``triggerer``) that is healthy, else 1."""
    try:
        with urllib.request.urlopen(server.rstrip("/") + _PATH, timeout=5) as answer:  # noqa: S310 (an address of our own)
            status = json.load(answer)[component]["status"]
    except (OSError, ValueError, KeyError) as error:
        print(f"{component}: {error!r}")  # noqa: T201 (what docker inspect shows)
        return 1
    print(f"{component}: {status}")  # noqa: T201
    return 0 if status == "healthy" else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
