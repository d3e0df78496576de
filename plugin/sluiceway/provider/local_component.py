"""Runs a component of a local Airflow: ``python -m`` with its name.

Its log server listens on the loopback interface only. Airflow has no setting for the address: the servers of its scheduler and
triggerer listen on every interface. Before 3.1, whose server is another one, they still do.

The scheduler starts tasks when the API server answers. A stack's components start together, the scheduler is the first that is
ready, and the tasks of connectors that ran before would fail for want of the API server, some of them several times.
"""

from __future__ import annotations

import functools
import runpy
import sys
import time
import urllib.error
import urllib.request
from typing import Any

HOST = "127.0.0.1"
_API_SERVER_SECONDS = 60.0  # its start takes 10 s on an idle machine; the scheduler must start even without it
_REQUEST_SECONDS = 5.0
_POLL_SECONDS = 0.3


def host() -> str:
    """Return the host at which the API server finds the log servers. For ``[core] hostname_callable``."""
    return HOST


def _serve_logs(serve: Any, port: int | None = None) -> None:
    """Run Airflow's log server; in a process of its own, whose server is the only one."""
    import uvicorn

    run = uvicorn.run
    uvicorn.run = lambda *arguments, **options: run(*arguments, **{**options, "host": HOST})
    serve(port)


def await_api_server(execution_api: str, within: float = _API_SERVER_SECONDS) -> bool:
    """Wait until Airflow's execution API answers, at most for ``within`` seconds, and return whether it does.

    ``execution_api`` is ``[core] execution_api_server_url``.
    """
    deadline = time.monotonic() + within
    while True:
        try:
            with urllib.request.urlopen(f"{execution_api.rstrip('/')}/health", timeout=_REQUEST_SECONDS):  # noqa: S310 (a URL of the stack's)
                return True
        except urllib.error.HTTPError:
            return True
        except OSError:
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECONDS)


def _start_tasks_after_the_api_server() -> None:
    """Make the scheduler wait once it is ready, so that both components start side by side."""
    from airflow.configuration import conf
    from airflow.jobs.job import Job
    from airflow.listeners import hookimpl
    from airflow.listeners.listener import get_listener_manager

    class Wait:
        """A listener. Airflow calls it before the scheduler's loop begins, and in the task processes that are forked from it."""

        @hookimpl(trylast=True)
        def on_starting(self, component: Any) -> None:
            if isinstance(component, Job):
                await_api_server(conf.get("core", "execution_api_server_url"))

    get_listener_manager().add_listener(Wait())


def main() -> None:
    """Run the command line of Airflow."""
    from airflow.utils import serve_logs as module

    if sys.argv[1:2] == ["scheduler"]:
        _start_tasks_after_the_api_server()
    module.serve_logs = functools.partial(_serve_logs, module.serve_logs)
    runpy.run_module("airflow", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
