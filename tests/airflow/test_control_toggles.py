"""A short ``make bench-airflow``: one pause and one resume of a connector with a constant load."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.flow import Flow
from support.stack import RunningStack
from support.toggles import play

pytestmark = pytest.mark.airflow


@pytest.mark.long
def test_a_pause_from_the_connectors_page_and_a_resume_from_airflow_lose_and_repeat_no_line(
    stack: RunningStack, folder: Path
) -> None:
    flow = Flow(stack.addresses.bootstrap, "toggled", folder)
    try:
        stack.connect.create(flow.name, flow.config)
        stack.await_states(flow.name, "RUNNING", "RUNNING")
        play(stack, flow, "button of the page", "PATCH /api/v2/dags")
        assert flow.settle() == (0, 0), "lost, repeated"
    finally:
        stack.connect.delete(flow.name)
        flow.close()
