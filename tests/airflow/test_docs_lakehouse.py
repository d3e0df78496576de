"""The tutorial about the lakehouse: each of its commands runs, and prints what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluiceway.stack import demo
from support.docs_pages import Shell, run_page
from support.stack import RunningStack

PAGE = Path(__file__).parents[2] / "docs/tutorial/topic-to-lakehouse.md"

pytestmark = [pytest.mark.airflow, pytest.mark.long, pytest.mark.timeout(1200)]


def test_each_command_of_the_page_prints_what_it_says(stack: RunningStack, tmp_path: Path) -> None:
    shell = Shell(stack, tmp_path, {"/tmp/lake": str(tmp_path / "lake")})  # noqa: S108 (the page's folder)
    demo.run_main_job(stack.connect, stack.home / "demo", print)
    try:
        run_page(PAGE, shell)
    finally:
        for name in {"demo-lake", demo.SOURCE, demo.SINK} & set(stack.connect.connectors()):
            stack.connect.delete(name)
