"""The mutants, by category of public behavior."""

from __future__ import annotations

from collections.abc import Mapping

from mutants.catalog import (
    airflow,
    cdc,
    cli,
    commits,
    conversions,
    dead_letters,
    delivery,
    fall_backs,
    fences,
    jdbc,
    locks,
    masks,
    rest,
    restarts,
    retries,
    sinks,
    states,
    transforms_columns,
    transforms_rows,
    validations,
)
from mutants.mutant import Mutant

CATALOG: Mapping[str, tuple[Mutant, ...]] = {
    "delivery": delivery.MUTANTS,
    "commits": commits.MUTANTS,
    "conversions": conversions.MUTANTS,
    "transforms": transforms_rows.MUTANTS,
    "transforms-columns": transforms_columns.MUTANTS,
    "fall-backs": fall_backs.MUTANTS,
    "fences": fences.MUTANTS,
    "locks": locks.MUTANTS,
    "retries": retries.MUTANTS,
    "dead-letters": dead_letters.MUTANTS,
    "states": states.MUTANTS,
    "restarts": restarts.MUTANTS,
    "validation": validations.MUTANTS,
    "masks": masks.MUTANTS,
    "rest": rest.MUTANTS,
    "jdbc": jdbc.MUTANTS,
    "sinks": sinks.MUTANTS,
    "cdc": cdc.MUTANTS,
    "cli": cli.MUTANTS,
    "airflow": airflow.MUTANTS,
}

ALL: tuple[Mutant, ...] = tuple(mutant for mutants in CATALOG.values() for mutant in mutants)
