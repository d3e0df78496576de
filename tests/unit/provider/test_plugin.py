"""Tests of the Airflow plugin."""

from __future__ import annotations

import pytest

from sluiceway.provider.plugin import external_views


@pytest.mark.parametrize(("base_url", "prefix"), [("", ""), ("http://host:8080", ""), ("https://host/airflow/", "/airflow")])
def test_links_to_the_page_start_with_airflows_base_path(base_url: str, prefix: str) -> None:
    page, tab = external_views(base_url)
    assert page["href"] == f"{prefix}/sluiceway/ui/index.html"
    assert tab["href"] == f"{prefix}/sluiceway/ui/index.html?dag={{DAG_ID}}"
    assert (page["destination"], tab["destination"]) == ("nav", "dag")
