"""Checks a change in at most 90 seconds: style, types, imports, generated pages, and the unit tests that reach changed modules.

Run: ``make check``, or ``make check SINCE=main``. The change is what differs from the commit SINCE, by default the last one;
uncommitted and new files belong to it.

A unit test file reaches a module if it imports it, or the modules that it imports import it, and so on. Those that reach it with
the fewest steps run first, as many as their durations (tests/durations.json) allow in the given time; the others are named.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
_LINKED = ("dags", "operators", "sensors")  # stand at the top level, and are linked into the package
_TEST_SECONDS = 80.0  # of two processes, so half of it passes
_UNKNOWN_SECONDS = 1.0  # a new file's
_MOST_STEPS = 3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--since", default="HEAD", help="commit that the change starts at, default: the last one")
    parser.add_argument("--list", action="store_true", help="print the test files, and run nothing")
    options = parser.parse_args()
    began = time.monotonic()
    changed = changed_files(options.since)
    python = [name for name in changed if name.endswith(".py") and (ROOT / name).exists()]
    chosen, left = within(_TEST_SECONDS, list(reaching(python)), json.loads((ROOT / "tests" / "durations.json").read_text()))
    print(f"{len(changed)} files changed since {options.since}; {len(chosen)} unit test files reach them", flush=True)
    if options.list:
        print(*chosen, sep="\n")
        return 0
    checks = [
        _start("ruff", "check", "."),
        _start("ruff", "format", "--check", "."),
        _start("mypy", *MYPY),
        _start("lint-imports", "--config", "setup.cfg"),
        _start("python", "tools/make_docs.py", "--check"),
    ]
    tests = _start("pytest", "-q", "-n", "2", "--dist", "loadfile", "-m", "not long", *chosen) if chosen else None
    failed = [name for name, process in [*checks, *([tests] if tests else [])] if not _ended(name, process)]
    if left:
        print(f"Not run, for lack of time: {len(left)} further test files, {', '.join(left[:5])}, ...")
    print(f"make check: {'failed: ' + ', '.join(failed) if failed else 'passed'} in {time.monotonic() - began:.0f} s")
    return 1 if failed else 0


#: What `make types` checks too.
MYPY = ("plugin", "tests", "tools")


def changed_files(since: str) -> list[str]:
    """Return the paths that differ from a commit or are new, relative to the root."""
    differ = _git("diff", "--name-only", since)
    return sorted({*differ, *_git("ls-files", "--others", "--exclude-standard")})


def _git(*arguments: str) -> list[str]:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def reaching(changed: Sequence[str]) -> dict[str, int]:
    """Return the unit test files that reach changed files, with the number of steps, those with the fewest first."""
    files = {str(path.relative_to(ROOT)): path for path in sorted((ROOT / "tests" / "unit").rglob("test_*.py"))}
    steps = {name: 0 for name in changed if name in files}
    modules = {module for name in changed if (module := module_of(name))}
    if not modules:
        return steps
    imports = {name: imported_by(path) for name, path in files.items()}
    graph = grimp.build_graph("sluiceway", cache_dir=str(ROOT / ".import_linter_cache"))
    seen: set[str] = set()
    for step in range(1, _MOST_STEPS + 1):
        seen |= modules
        for name, names in imports.items():
            if not names.isdisjoint(modules):
                steps.setdefault(name, step)
        modules = {
            by for module in modules if module in graph.modules for by in graph.find_modules_that_directly_import(module)
        } - seen
    return dict(sorted(steps.items(), key=lambda each: (each[1], each[0])))


def module_of(path: str) -> str | None:
    """Return the module's name of a file of the product or of the tests' support, None for others."""
    parts = Path(path).with_suffix("").parts
    if parts[:2] == ("plugin", "sluiceway"):
        names = parts[1:]
    elif parts[0] in _LINKED:
        names = ("sluiceway", *parts)
    elif parts[:2] == ("tests", "support"):
        names = parts[1:]
    else:
        return None
    return ".".join(names[:-1] if names[-1] == "__init__" else names)


def imported_by(path: Path) -> set[str]:
    """Return the modules that a file imports, in functions too; ``from a import b`` may import the module a.b."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{each.name}" for each in node.names)
    return found


def within(seconds: float, names: Sequence[str], durations: Mapping[str, float]) -> tuple[list[str], list[str]]:
    """Return the first files that take at most so many seconds together, and the others."""
    chosen: list[str] = []
    left: list[str] = []
    for name in names:
        seconds -= durations.get(name, _UNKNOWN_SECONDS)
        (chosen if seconds >= 0 or not chosen else left).append(name)
    return chosen, left


def _start(tool: str, *arguments: str) -> tuple[str, subprocess.Popen[str]]:
    command = [str(Path(sys.executable).with_name(tool)), *arguments]
    environment = {**os.environ, "PYTHONPATH": "plugin"}  # for import-linter
    return tool, subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def _ended(name: str, process: subprocess.Popen[str]) -> bool:
    """Wait for a check; print what it says if it failed, else its last line."""
    output, _ = process.communicate()
    lines = output.strip().splitlines()
    print(f"== {name}", *(lines if process.returncode else lines[-1:]), sep="\n", flush=True)
    return process.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
