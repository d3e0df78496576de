"""The mutants, by category of public behavior."""

from __future__ import annotations

from collections.abc import Mapping

from mutants.catalog import (
    airflow,
    aws,
    cdc,
    changes,
    cli,
    commits,
    conversions,
    dead_letters,
    delivery,
    dlt,
    fall_backs,
    fences,
    folder,
    folder_s3,
    hbase,
    http,
    intervals,
    jdbc,
    live_assets,
    locks,
    masks,
    nats,
    observability,
    queues,
    rabbitmq,
    rest,
    restarts,
    retries,
    search,
    singer,
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
    "observability": observability.MUTANTS,
    "rest": rest.MUTANTS,
    "jdbc": jdbc.MUTANTS,
    "sinks": sinks.MUTANTS,
    "search": search.MUTANTS,
    "folder": folder.MUTANTS,
    "folder-s3": folder_s3.MUTANTS,
    "hbase": hbase.MUTANTS,
    "http": http.MUTANTS,
    "intervals": intervals.MUTANTS,
    "live-assets": live_assets.MUTANTS,
    "changes": changes.MUTANTS,
    "queues": queues.MUTANTS,
    "dlt": dlt.MUTANTS,
    "nats": nats.MUTANTS,
    "aws": aws.MUTANTS,
    "rabbitmq": rabbitmq.MUTANTS,
    "singer": singer.MUTANTS,
    "cdc": cdc.MUTANTS,
    "cli": cli.MUTANTS,
    "airflow": airflow.MUTANTS,
}

ALL: tuple[Mutant, ...] = tuple(mutant for mutants in CATALOG.values() for mutant in mutants)


def chosen(only: str) -> list[Mutant]:
    """Return the mutants of a list of ids and categories, all for an empty list. Raises SystemExit for an unknown name."""
    names = [name for name in only.split(",") if name]
    by_name = {**{mutant.id: (mutant,) for mutant in ALL}, **CATALOG}
    if unknown := [name for name in names if name not in by_name]:
        raise SystemExit(f"No mutant or category is named {', '.join(unknown)}. Categories: {', '.join(CATALOG)}")
    return [mutant for name in names for mutant in by_name[name]] if names else list(ALL)
