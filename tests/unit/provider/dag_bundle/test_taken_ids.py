"""Tests of connectors whose DAGs' ids are taken."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from sluiceway.errors import ConflictError
from sluiceway.provider.dag_bundle.dag_ids import application_dag_id, dag_id
from sluiceway.provider.dag_bundle.taken_ids import refuse_taken_ids

BIG = {"sluiceway.application": "big"}


def others(dags: Collection[str]) -> dict[str, str]:
    return {dag: "team" for dag in dags if dag in ("nightly", dag_id("day: one"), application_dag_id("big"))}


@pytest.mark.parametrize(
    ("name", "config", "why"),
    [
        ("nightly", {}, "DAG nightly exists in bundle team"),
        ("day: one", {}, "DAG day_x3A_x20one exists in bundle team"),
        ("a", BIG, f"DAG {application_dag_id('big')} exists in bundle team"),
        ("application~a", {}, "those of shared applications"),
        ("application~", {}, "those of shared applications"),
    ],
)
def test_a_connector_does_not_take_the_id_of_a_dag(name: str, config: dict[str, str], why: str) -> None:
    with pytest.raises(ConflictError, match=why):
        refuse_taken_ids(others, name, config)


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("orders", {}),
        ("nightly", {"airflow.dag": "nightly"}),
        ("application~a", {"airflow.dag": "mine", **BIG}),
        ("application-a", {"sluiceway.application": "small"}),
    ],
)
def test_other_connectors_are_admitted(name: str, config: dict[str, str]) -> None:
    refuse_taken_ids(others, name, config)
