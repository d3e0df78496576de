"""Answers the connectors page's requests to Airflow's API where no Airflow runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from playwright.sync_api import Route

from support.page import Ui

LINES = ("[orders|worker] Starting", "[orders|task-0] Polling", "[other|task-0] Not ours", "[orders|task-1] <b>Failed</b>")

ANSWERS: dict[str, Any] = {
    "dagRuns": {"dag_runs": [{"dag_run_id": "manual"}]},
    "taskInstances": {
        "task_instances": [
            {"task_id": "run", "try_number": 2, "map_index": -1, "state": "running", "start_date": "2026-01-02T03:04:05Z"}
        ]
    },
    "links": {"extra_links": {"Spark UI": "http://spark:4040"}},
}
"""The answers by the last part of their paths."""


def answer_for_airflow(ui: Ui, answers: Mapping[str, Any] = ANSWERS, lines: Sequence[str] = LINES) -> list[str]:
    """Answer requests to Airflow's API, those for a log with ``lines``. Return the URLs, as they arrive."""
    asked: list[str] = []
    events = [{"timestamp": "2026-01-02T03:04:05Z", "level": "info", "event": each} for each in lines]

    def answer(route: Route) -> None:
        asked.append(route.request.url)
        last = route.request.url.split("?")[0].rsplit("/", 1)[1]
        if last in answers:
            route.fulfill(json=answers[last])
        else:
            route.fulfill(body="\n".join(map(json.dumps, events)), content_type="application/x-ndjson")

    ui.page.route("**/api/v2/**", answer)
    return asked


def open_log(ui: Ui) -> None:
    """Open the log on a connector's page."""
    ui.page.get_by_text("Log of the driver and its tasks", exact=True).click()
