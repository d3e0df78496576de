"""Builds an environment for each cell of the matrix from the wheel, tries it, and prints a table.

    python tools/run_matrix.py [CELL ...] [--checks CHECK,...] [--folder FOLDER] [--record]

``make test-matrix`` runs it. Without cells it runs all; ``--record`` writes the answers into ``tools/matrix_results.json``, from
which ``make docs`` makes a page. Environments are deleted as soon as their cell is done; the next one is made while a cell is
tried. Returns 1 unless every check passed or was refused with its sentence.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from matrix_cells import ALL, CELLS, RESULTS, Cell, describe, results, verdict
from matrix_environment import Environment, resolve
from matrix_pythons import find_python

from support.postgres import PostgresServer
from support.wheel import build_wheel

Prepared: TypeAlias = "Environment | dict[str, str]"


def one_ahead(make: Callable[[Cell], Prepared], cells: Sequence[Cell]) -> Iterator[tuple[Cell, Prepared]]:
    """Yield cells with what ``make`` returns for them, while it makes the next one on another thread."""
    with ThreadPoolExecutor(1) as thread:
        coming = [thread.submit(make, cell) for cell in cells[:1]]
        for cell, following in zip(cells, [*cells[1:], None], strict=True):
            ready = coming.pop().result()
            coming += [thread.submit(make, following)] if following else []
            yield cell, ready


def prepare(cell: Cell, wheel: Path, folder: Path) -> Prepared:
    """Return the cell's environment, or the answers of one that is not made."""
    if cell.resolves:
        return resolve_cell(cell, wheel, folder)
    python = find_python(cell.python)
    if python is None:
        return {"install": f"no Python {cell.python} was found on this machine"}
    environment = Environment(cell, python, folder)
    problem = environment.install(wheel)
    environment.forget("pyspark")  # uv keeps 1.3 GB of each version that it has built for each Python: 50 GB in all
    return {"install": problem} if problem else environment


def tried(cell: Cell, ready: Prepared, checks: Sequence[str], postgresql: str) -> dict[str, Any]:
    """Return a cell's result: the day, versions, and the answers of its checks."""
    day = dt.datetime.now(dt.timezone.utc).date().isoformat()
    if not isinstance(ready, Environment):
        return {"day": day, "versions": {}, "answers": ready}
    answers = ready.run([each for each in cell.checks if each in checks], postgresql)
    return {"day": day, "versions": ready.versions(), "answers": answers}


def resolve_cell(cell: Cell, wheel: Path, folder: Path) -> dict[str, str]:
    """Return for each extra why it does not resolve beside Airflow's constraints, or an empty string."""
    folder.mkdir(parents=True)
    expected = [extra for extra in cell.extras if extra not in cell.refused]
    together = not resolve(wheel, cell, expected, folder)
    return {
        extra: "" if together and extra in expected else resolve(wheel, cell, ("airflow", extra), folder) for extra in cell.extras
    }


def main(arguments: Sequence[str]) -> int:
    """Run cells one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cells", nargs="*", metavar="CELL", help=", ".join(cell.name for cell in CELLS))
    parser.add_argument("--checks", default=",".join(ALL))
    parser.add_argument("--folder", type=Path, default=Path("build/matrix"))
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args(arguments)
    known = {cell.name: cell for cell in CELLS}
    if unknown := set(options.cells) - set(known):
        parser.error(f"no such cells: {', '.join(sorted(unknown))}")
    chosen = [known[name] for name in options.cells or known]
    folder = options.folder.absolute()
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "wheel").mkdir(parents=True)
    os.environ["UV_CACHE_DIR"] = str(folder / "cache")  # not the user's, because parts of it are deleted
    wheel = build_wheel(folder / "wheel", java=False)
    failed = False
    with _postgresql(chosen) as address:
        for cell, ready in one_ahead(lambda cell: prepare(cell, wheel, folder / cell.name), chosen):
            found = tried(cell, ready, options.checks.split(","), address)
            print("  ".join(describe(cell, found)), flush=True)  # noqa: T201 (the tool's output)
            failed = failed or "FAILED" in verdict(cell, found)
            shutil.rmtree(folder / cell.name, ignore_errors=True)
            if options.record:
                RESULTS.write_text(json.dumps({**results(), cell.name: found}, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    shutil.rmtree(folder)
    return int(failed)


@contextmanager
def _postgresql(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield host, port, user, and password of a server that has started, unless no cell needs one."""
    if not any("cdc" in cell.checks for cell in cells):
        yield ""
        return
    with PostgresServer() as server:
        database = server.first
        yield f"127.0.0.1:{server.port}:{database.user}:{database.password}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
