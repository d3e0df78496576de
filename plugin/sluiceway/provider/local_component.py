"""Runs a component of Airflow whose log server listens on the loopback interface only: ``python -m`` with its name.

Airflow has no setting for the address: the servers of its scheduler and triggerer listen on every interface. Before 3.1, whose
server is another one, they still do.
"""

from __future__ import annotations

import functools
import runpy
from typing import Any

HOST = "127.0.0.1"


def host() -> str:
    """Return the host at which the API server finds the log servers. For ``[core] hostname_callable``."""
    return HOST


def _serve_logs(serve: Any, port: int | None = None) -> None:
    """Run Airflow's log server; in a process of its own, whose server is the only one."""
    import uvicorn

    run = uvicorn.run
    uvicorn.run = lambda *arguments, **options: run(*arguments, **{**options, "host": HOST})
    serve(port)


def main() -> None:
    """Run the command line of Airflow."""
    from airflow.utils import serve_logs as module

    module.serve_logs = functools.partial(_serve_logs, module.serve_logs)
    runpy.run_module("airflow", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
