"""``sluiceway plugins install``, ``remove`` and ``upgrade``: changes the Java and Singer plugins of this machine."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sluiceway.cli.common import Subparsers, say, worker
from sluiceway.cli.output import show, table

if TYPE_CHECKING:
    from sluiceway.java_plugins.index import JavaPlugin, PluginIndex
    from sluiceway.java_plugins.installed import PluginFolder
    from sluiceway.singer_plugins.programs import SingerPlugin


def register(commands: Subparsers) -> None:
    """Add the commands to those of ``plugins``."""
    install = commands.add_parser(
        "install",
        help="install Java plugins from a Maven repository, a URL, an archive, a jar, or a folder, or Singer's taps and targets",
        description="Install Java plugins, with the jars that they depend on and without those that Kafka Connect's runtime has. "
        "Downloads the runtime if it is missing, prints the plugins' classes and configs to begin with, and records what was "
        "installed in plugins.lock. Singer's taps and targets are installed with pip, each with packages of its own.",
    )
    install.add_argument(
        "sources",
        nargs="*",
        metavar="PLUGIN",
        help="GROUP:ARTIFACT[:VERSION], a URL, or a file or folder: a zip of Confluent Hub, a .tar.gz, a jar; for a tap or "
        "target of Singer singer:REQUIREMENT, with a requirement of pip",
    )
    install.add_argument("--locked", type=Path, metavar="FILE", help="install what this plugins.lock lists, exactly as it was")
    _add_folder(install, "--to")
    _add_no_java(install)
    install.add_argument(
        "--python", help="the Python that runs taps and targets of Singer, such as 3.11 or a path (default: this one)"
    )
    install.set_defaults(run=run_install)
    remove = commands.add_parser("remove", help="remove installed plugins")
    _add_names(remove)
    _add_folder(remove, "--from")
    remove.set_defaults(run=run_remove)
    upgrade = commands.add_parser("upgrade", help="replace installed plugins from a repository by their newest versions")
    _add_names(upgrade)
    _add_folder(upgrade, "--to")
    _add_no_java(upgrade)
    upgrade.set_defaults(run=run_upgrade)


def add_installed(which: argparse._ActionsContainer) -> None:
    """Add the options that list what ``install`` has installed."""
    which.add_argument("--installed", action="store_true", help="list what 'plugins install' has installed on this machine")
    which.add_argument("--from", type=Path, dest="folder", metavar="FOLDER", help="the same, in another folder of plugins")


def run_install(options: argparse.Namespace) -> int:
    """Install the plugins and describe them."""
    from sluiceway.errors import ConfigError
    from sluiceway.java_plugins.installed import read_lock
    from sluiceway.singer_plugins.install import is_singer
    from sluiceway.stack.plugin_install import install, install_locked, require_runtime

    if bool(options.sources) == (options.locked is not None):
        raise ConfigError("Name the plugins to install, or a lock file with --locked.")
    folder = _folder(options)
    sources = options.sources if options.locked is None else [each.source for each in read_lock(options.locked).values()]
    if not sources or not all(map(is_singer, sources)):
        require_runtime(say)
    if options.locked is not None:
        found = install_locked(folder, options.locked, say)
    else:
        found = [install(folder, source, say, python=options.python) for source in options.sources]
    _describe(folder, [each.name for each in found], java=not options.no_java)
    return 0


def run_upgrade(options: argparse.Namespace) -> int:
    """Replace the plugins by their newest versions and describe these."""
    from sluiceway.stack.plugin_install import upgrade

    folder = _folder(options)
    found = [upgrade(folder, name, say) for name in options.names]
    _describe(folder, [each.name for each in found], java=not options.no_java)
    return 0


def run_remove(options: argparse.Namespace) -> int:
    """Remove the plugins."""
    folder = _folder(options)
    with folder.changing() as work:
        for name in options.names:
            folder.remove(name, work)
            say(f"Removed {name}")
    return 0


def run_list(options: argparse.Namespace) -> int:
    """Print what is installed. Return 1 if a plugin's folder is missing."""
    from sluiceway.stack.plugin_sources import shown

    folder = _folder(options)
    rows = [(each.name, shown(each.source), folder.location(each.name)) for each in folder.plugins().values()]
    document = [
        {"name": name, "source": source, "location": str(place), "missing": not place.is_dir()} for name, source, place in rows
    ]
    cells = [(name, source, str(place) if place.is_dir() else f"{place} is missing") for name, source, place in rows]
    show(document, [("NAME", "SOURCE", "LOCATION"), *cells], options.output)
    return 0 if all(place.is_dir() for *_, place in rows) else 1


def _add_names(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", metavar="NAME", help="its name in 'plugins list --installed'")


def _add_folder(parser: argparse.ArgumentParser, option: str) -> None:
    parser.add_argument(
        option,
        type=Path,
        dest="folder",
        metavar="FOLDER",
        help="the folder of plugins, which plugin.path must name (default: that of 'sluiceway up')",
    )


def _add_no_java(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-java", action="store_true", help="do not ask the new plugins for their versions and options")


def _folder(options: argparse.Namespace) -> PluginFolder:
    from sluiceway.folders import state_home
    from sluiceway.java_plugins.installed import PluginFolder, installed_plugins

    return PluginFolder(options.folder.expanduser() if options.folder is not None else installed_plugins(state_home()))


def _describe(folder: PluginFolder, names: Sequence[str], *, java: bool) -> None:
    """Print the classes of plugins, what is wrong with them, configs to begin with, and what to do next."""
    from sluiceway.java_plugins.index import PluginIndex
    from sluiceway.java_plugins.versions import check_versions
    from sluiceway.singer_plugins.programs import read_plugin

    singer = [plugin for name in names if (plugin := read_plugin(folder.location(name))) is not None]
    places = [folder.location(name) for name in names if folder.location(name) not in [each.location for each in singer]]
    for each in singer:
        _print_singer(each)
    if not places:
        say("\n" + "\n".join(_next(folder.path, singer)))
        return
    index = PluginIndex([folder.path])
    if java:
        check_versions(index, places)
    plugins = [each for each in index.plugins() if each.location in places]
    say("\n" + table([("CLASS", "TYPE", "VERSION"), *((each.class_name, each.kind, each.version) for each in plugins)]))
    for line in _problems(index, places):
        say(line)
    connectors = _own(each for each in plugins if each.kind in ("source", "sink"))
    for line in _in_python(connectors):
        say(line)
    if java:
        _print_configs(connectors)
    say("\n" + "\n".join(_next(folder.path, connectors)))


def _print_singer(plugin: SingerPlugin) -> None:
    """Print what is installed, and for a tap and a target a config to begin with."""
    say(f"\nPrograms: {', '.join(plugin.programs)}, with Python {plugin.python}")
    for program in plugin.programs:
        if program.startswith("tap-"):
            own = {"singer.tap": program, "singer.config": "{}", "singer.select": "*.*", "topic.prefix": f"{program}."}
            own = {"connector.class": "SingerSource", **own}
        elif program.startswith("target-"):
            own = {"connector.class": "SingerSink", "topics": "orders", "singer.target": program, "singer.config": "{}"}
        else:
            continue
        say(f"\nA config to begin with:\n{json.dumps({'name': program, 'config': own}, indent=2)}")


def _own(connectors: Iterable[JavaPlugin]) -> list[JavaPlugin]:
    """Return the connectors of the jars that plugins are named after, not those of their dependencies; all, if there are none."""
    from sluiceway.java_plugins.class_files import ClassPath

    found = list(connectors)
    own = []
    for each in found:
        with ClassPath([jar for jar in each.jars if jar.stem == each.location.name]) as classes:
            own += [each] if each.class_name in classes else []
    return own or found


def _problems(index: PluginIndex, places: Iterable[Path]) -> list[str]:
    problems = index.problems()
    return [f"  {problem}" for place in places for problem in problems.get(place, ())]


def _in_python(plugins: Iterable[JavaPlugin]) -> list[str]:
    """Return a line for each class that Sluiceway has in Python, too, and then prefers."""
    from sluiceway.discovery import plugin_named

    names = sorted({each.class_name for each in plugins})
    return [
        f"Sluiceway has {name} in Python, and uses that unless the worker file has plugin.java=prefer."
        for name in names
        if plugin_named("sluiceway.connectors", name) is not None
    ]


def _print_configs(plugins: Iterable[JavaPlugin]) -> None:
    from sluiceway.cli.first_config import first_config
    from sluiceway.errors import ConnectError
    from sluiceway.java_plugins.classes import plugin_class
    from sluiceway.java_plugins.connector import JavaConnector
    from sluiceway.java_plugins.hosts import close_shared_host

    try:
        for plugin in plugins:
            cls = plugin_class(plugin)
            if cls is not None and issubclass(cls, JavaConnector):
                config = first_config(plugin.class_name, plugin.kind, cls.config_def())
                say(f"\nA config to begin with:\n{json.dumps(config, indent=2, ensure_ascii=False)}")
    except ConnectError as error:
        say(f"\nThe plugins' options are unknown: {error}")
    finally:
        close_shared_host()


def _next(folder: Path, connectors: Sequence[object]) -> list[str]:
    """Return what is left to do until records flow."""
    from sluiceway.config.parsing import parse_list
    from sluiceway.folders import state_home
    from sluiceway.java_plugins.installed import installed_plugins

    made = state_home() / "worker.properties"
    named = parse_list(worker(made).raw.get("plugin.path")) if made.exists() else []
    lines = []
    if folder not in [Path(each).expanduser().absolute() for each in named]:
        stack = not made.exists() and folder == installed_plugins(state_home())
        lines.append("Next, start a stack, which uses this folder:" if stack else "Next, name this folder in your worker file:")
        lines.append("  sluiceway up" if stack else f"  plugin.path={','.join([*named, str(folder)])}")
    if connectors:
        lines += ["Save a config, complete it, and create the connector:", "  sluiceway apply -f connector.json"]
    else:
        lines.append("Configs may name these classes now.")
    return lines
