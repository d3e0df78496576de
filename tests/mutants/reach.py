"""Maps each mutant to the files of unit tests that reach its place, by coverage's contexts.

``reach.json`` is the map. Recording it takes as long as the unit tests several times over, so it is committed:

    make mutants-map                     # adds the mutants that it lacks
    make mutants-map ONLY=masks          # some categories or mutants again
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from mutants.catalog import ALL, chosen
from mutants.mutant import ROOT, Mutant

MAP = Path(__file__).with_name("reach.json")
_MOST_FILES = 12

DATA = Path("build/mutants/coverage")
"""The start of the names of coverage's files, relative to the source tree."""

MODULES = "MUTANTS_MODULES"
"""The environment variable with the paths of the modules to record."""


def reaching(mutant: Mutant) -> list[str]:
    """Return the tests to run on a mutant: those that it names, then the files of unit tests that reach its place."""
    return [*mutant.tests, *_read().get(mutant.id, ())]


def _read() -> dict[str, list[str]]:
    known: dict[str, list[str]] = json.loads(MAP.read_text(encoding="utf-8"))
    return known


def _record(modules: Iterable[str]) -> None:
    """Run the unit tests and record which lines of these modules they execute."""
    folder = ROOT / DATA.parent
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob(f"{DATA.name}*"):
        old.unlink()
    environment = {**os.environ, "PYTHONPATH": "tests", "COVERAGE_CORE": "ctrace", MODULES: os.pathsep.join(modules)}
    command = ["-m", "pytest", "-p", "mutants.reach_plugin", "tests/unit", "-n", "2", "--dist", "loadfile", "-q"]
    # Failures, which a busy machine may cause, take nothing from the map.
    subprocess.run([sys.executable, *command, "-p", "no:cacheprovider"], cwd=ROOT, env=environment, check=False)


def _derive(mutants: Iterable[Mutant]) -> dict[str, list[str]]:
    """Return the files of tests that reach each mutant's place, first those that are named like its module."""
    from coverage import CoverageData

    data = CoverageData(str(ROOT / DATA))
    for part in (ROOT / DATA.parent).glob(f"{DATA.name}.*"):
        measured = CoverageData(str(part))
        measured.read()
        data.update(measured)
    contexts = {Path(name).resolve(): data.contexts_by_lineno(name) for name in data.measured_files()}
    return {mutant.id: _files(mutant, contexts.get((ROOT / mutant.path).resolve(), {})) for mutant in mutants}


def _files(mutant: Mutant, contexts: dict[int, list[str]]) -> list[str]:
    lines = mutant.span((ROOT / mutant.path).read_text(encoding="utf-8"))
    found = {_file(test) for line in lines for test in contexts.get(line, ()) if test}
    shares = Counter(file for tests in contexts.values() for file in {_file(test) for test in tests if test})
    words = _words(mutant.module)
    return sorted(found, key=lambda file: (-len(words & _words(file)), -shares[file], file))[:_MOST_FILES]


def _words(path: str) -> set[str]:
    return set(re.findall("[a-z]+", path.lower()))


def _file(test: str) -> str:
    return test.partition("::")[0]


def main() -> None:
    """Record the mutants of the command line, or those that the map lacks; with ``--derive`` of the last record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="ids and categories, separated by commas (default: what the map lacks)")
    parser.add_argument("--derive", action="store_true", help="use the last record")
    arguments = parser.parse_args()
    known = _read()
    mutants = chosen(arguments.only) if arguments.only else [mutant for mutant in ALL if mutant.id not in known]
    if not arguments.derive:
        _record(sorted({mutant.path for mutant in mutants}))
    found = {**known, **_derive(mutants)}
    ordered = {mutant.id: found[mutant.id] for mutant in ALL if mutant.id in found}
    MAP.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")
    print(f"{len(mutants)} mutants were recorded, {len(ALL) - len(ordered)} are missing")


if __name__ == "__main__":
    main()
