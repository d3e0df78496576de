"""``sluiceway new``: writes the package of a new connector from the templates beside this module."""

from __future__ import annotations

import argparse
import keyword
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from importlib.util import find_spec
from pathlib import Path

from sluiceway.cli.common import Subparsers, say
from sluiceway.errors import ConfigError

_TEMPLATES = Path(__file__).with_name("templates") / "connector"
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_LONGEST_NAME = 32  # so that no line of the generated code has more than 120 characters
_OWN_MODULES = frozenset(("examples", "service", "sluiceway", "tests"))
_BLOCK = re.compile(r"^#if (\S+)\n(.*?)^#end\n", re.MULTILINE | re.DOTALL)


def register(subparsers: Subparsers) -> None:
    new = subparsers.add_parser("new", help="write the package of a new connector, with tests and examples")
    commands = new.add_subparsers(title="commands", metavar="COMMAND", required=True)
    connector = commands.add_parser(
        "connector",
        help="write the package of a new connector, with tests and examples",
        description="Write a Python package with a connector, tests of Kafka Connect's contract, a README, and examples. It "
        "runs as it is, against a small HTTP service that is among the examples. Then print the commands that test and run it.",
    )
    connector.add_argument(
        "name", metavar="NAME", help="name of the package, such as acme-orders: lower-case letters, digits, and single hyphens"
    )
    connector.add_argument("--source", action="store_true", help="a connector that reads into Kafka (default, without --sink)")
    connector.add_argument("--sink", action="store_true", help="a connector that writes from Kafka; with --source, both")
    connector.add_argument(
        "--to", type=Path, metavar="DIR", help="folder to write; it must be empty or not exist (default: NAME, in this folder)"
    )
    connector.set_defaults(run=run_connector)


def run_connector(options: argparse.Namespace) -> int:
    """Write the package and print the next commands. Raises ConfigError."""
    name: str = options.name
    kinds = tuple(kind for kind in ("source", "sink") if getattr(options, kind)) or ("source",)
    check_name(name, kinds)
    folder: Path = options.to or Path(name)
    count = write(name, kinds, folder)
    say(f"Wrote {count} files to {folder}. Next, in the environment of Sluiceway:\n")
    for line in _next_commands(folder, kinds):
        say(line)
    return 0


def check_name(name: str, kinds: Sequence[str]) -> None:
    """Raise ConfigError for a name that a package, its module, or its connectors cannot have in this environment."""
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        raise ConfigError(
            f"{name!r} cannot be the name of a package. Use lower-case letters, digits, and single hyphens, at most "
            f"{_LONGEST_NAME} characters, and a letter first, such as acme-orders."
        )
    problem = _taken(name) or next(filter(None, (_taken_alias(f"{class_prefix(name)}{kind.title()}") for kind in kinds)), None)
    if problem:
        raise ConfigError(f"{name} cannot be the name of a connector's package: {problem}. Choose another, such as acme-{name}.")


def module_name(name: str) -> str:
    """Return the module of a package: ``acme_orders`` for ``acme-orders``."""
    return name.replace("-", "_")


def class_prefix(name: str) -> str:
    """Return the start of a package's class names: ``AcmeOrders`` for ``acme-orders``."""
    return "".join(part.capitalize() for part in name.split("-"))


def write(name: str, kinds: Sequence[str], folder: Path) -> int:
    """Write the files to an empty or new folder and return their number. Raises ConfigError, also for a folder with files."""
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise ConfigError(f"{folder} exists and is not empty. Remove it, or choose another folder with --to.")
        files = dict(rendered(name, kinds))
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"Cannot write to {folder}: {error.strerror}. Choose another folder with --to.") from error
    return len(files)


def rendered(name: str, kinds: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each file."""
    names = {"acme-orders": name, "acme_orders": module_name(name), "AcmeOrders": class_prefix(name)}
    parts = {"common", *kinds, "both" if len(kinds) > 1 else f"{kinds[0]}-alone"}

    def named(text: str) -> str:
        return re.sub("|".join(names), lambda found: names[found[0]], text)

    for part in sorted(parts):
        for path in sorted((_TEMPLATES / part).rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                text = _BLOCK.sub(lambda found: found[2] if found[1] in parts else "", path.read_text(encoding="utf-8"))
                target = path.relative_to(_TEMPLATES / part).as_posix().replace("dot-", ".")
                yield named(target), named(text)


def _taken(name: str) -> str | None:
    """Return why the module or the distribution cannot have this name. An editable installation may be written again."""
    module = module_name(name)
    if keyword.iskeyword(module):
        return f"{module} is a keyword of Python"
    if module in sys.stdlib_module_names:
        return f"Python has a module {module}"
    if module in _OWN_MODULES:
        return f"{module} is a module of Sluiceway or of the generated package"
    from sluiceway.installation import is_editable

    owners = packages_distributions().get(module, ()) if find_spec(module) is not None else ()  # reads all packages' files
    for owner in (name, *owners):
        try:
            installed = distribution(owner)
        except PackageNotFoundError:
            continue
        if owner != name or not is_editable(installed):
            return f"{owner} is installed in this environment"
    return None


def _taken_alias(alias: str) -> str | None:
    from sluiceway.discovery import has_built_in

    return f"Sluiceway has a connector {alias}" if has_built_in("sluiceway.connectors", alias) else None


def _next_commands(folder: Path, kinds: Sequence[str]) -> Iterator[str]:
    """Yield shell commands that work as they are printed, in this order."""
    connectors = [f"examples/{kind}.properties" for kind in (kinds if "source" in kinds else ("input", *kinds))]
    yield f"  cd {shlex.quote(str(folder))}"
    yield "  pip install -e '.[test]'"
    yield "  pytest"
    yield "  python examples/service.py &          # the service that is connected"
    yield "  sluiceway broker start --port 9092    # unless examples/worker.properties names a broker of yours"
    yield f"  sluiceway standalone examples/worker.properties {' '.join(connectors)}"
    yield "\nREADME.md says how to see the records, and what to change to connect your own system."
