"""The tutorial about change data capture: its commands run, and print what the page says. The server is not in Docker."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.database import PASSWORD, USER
from support.docs_pages import Shell, run_page
from support.postgres import PostgresServer
from support.stack import RunningStack

PAGE = Path(__file__).parents[2] / "docs/tutorial/changes-of-a-database.md"
_DOCKER = """
docker() {{
    case "$*" in
        *psql*) "{python}" -c 'import psycopg, sys; psycopg.connect("{address}", autocommit=True).execute(sys.stdin.read())';;
        run*|*pg_isready*|rm*) ;;
        *) return 1;;
    esac
}}
"""

pytestmark = [pytest.mark.airflow, pytest.mark.long, pytest.mark.timeout(1200)]


def test_each_command_of_the_page_prints_what_it_says(stack: RunningStack, tmp_path: Path) -> None:
    with PostgresServer() as server:
        address = f"postgresql://{USER}:{PASSWORD}@localhost:{server.port}/postgres"
        replaced = {
            "/tmp/shop": str(tmp_path / "shop"),  # noqa: S108 (the page's folder)
            "localhost:9092": stack.addresses.bootstrap,
            '"5433"': f'"{server.port}"',
            '"database.user": "postgres"': f'"database.user": "{USER}"',
            '"secret"': f'"{PASSWORD}"',
        }
        shell = Shell(stack, tmp_path, replaced, _DOCKER.format(python=sys.executable, address=address))
        try:
            run_page(PAGE, shell)
        finally:
            for name in {"shop-changes", "shop-copy"} & set(stack.connect.connectors()):
                stack.connect.delete(name)
