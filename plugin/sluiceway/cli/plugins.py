"""``sluiceway plugins``: lists plugins, and prepares Java plugins on this machine."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluiceway.cli import get, plugin_install
from sluiceway.cli.common import Subparsers, add_server, say, worker
from sluiceway.cli.output import Rows, add_output, show

if TYPE_CHECKING:
    from sluiceway.java_plugins.index import JavaPlugin, PluginIndex


def register(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("plugins", help="list the installed plugins, or prepare Java plugins on this machine")
    _add_list_options(parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    listing = commands.add_parser("list", help="list the server's plugins, as without a command, or what is installed here")
    which = listing.add_mutually_exclusive_group()
    get.add_all_plugins(which)
    plugin_install.add_installed(which)
    _add_server_options(listing)
    listing.set_defaults(run=run_list)
    plugin_install.register(commands)
    scan = commands.add_parser(
        "scan",
        help="list the Java plugins in plugin.path on this machine, with what is wrong with them",
        description="List the Java plugins in plugin.path on this machine, as connect-plugin-path list does. Stores the result "
        "in the cache folder, where workers find it: run it when an image is built.",
    )
    _add_path_options(scan)
    add_output(scan)
    scan.set_defaults(run=run_scan)
    describe = commands.add_parser("describe", help="show the versions, jars and problems of a Java plugin on this machine")
    describe.add_argument("name", metavar="CLASS", help="the class name or an alias")
    _add_path_options(describe)
    describe.add_argument("-o", "--output", choices=("yaml", "json"), default="yaml", help="output format (default: yaml)")
    describe.set_defaults(run=run_describe)
    fetch = commands.add_parser(
        "fetch-runtime",
        help="download the jars of Kafka Connect's runtime, which Java plugins need",
        description="Download the jars of Kafka Connect's runtime that Java plugins need, check their SHA-256 and print their "
        "licenses. Not needed on a machine with Kafka, where KAFKA_HOME names its folder.",
    )
    fetch.add_argument("--to", type=Path, metavar="FOLDER", help="KAFKA_HOME of the workers (default: in the cache folder)")
    fetch.set_defaults(run=run_fetch)


def run_list(options: argparse.Namespace) -> int:
    """Print the server's plugins, or those that are installed on this machine."""
    here = options.installed or options.folder is not None
    return plugin_install.run_list(options) if here else get.run(options)


def run_scan(options: argparse.Namespace) -> int:
    """Print the Java plugins and their problems. Return 1 if there is a problem."""
    properties = _properties(options)
    index = _index(options, properties)
    problems, notes = index.problems(), index.notes()
    plugins = [_json(plugin, properties) for plugin in index.plugins()]
    document: dict[str, Any] = {
        "plugins": plugins,
        "problems": {str(location): found for location, found in problems.items()},
        "notes": {str(location): note for location, note in notes.items()},
    }
    show(document, _rows(plugins), options.output)
    if options.output == "table":
        for location in sorted({*problems, *notes}):
            say(f"\n{location}:")
            for problem in problems.get(location, ()):
                say(f"  {problem}")
            if location in notes:
                say(f"  Note: {notes[location]}")
    return 1 if problems else 0


def run_describe(options: argparse.Namespace) -> int:
    """Print all versions of one Java plugin."""
    from sluiceway.cli.output import text
    from sluiceway.errors import NotFoundError

    properties = _properties(options)
    index = _index(options, properties)
    found = index.all_versions(options.name)
    if not found:
        raise NotFoundError(f"plugin.path has no Java plugin {options.name}. 'sluiceway plugins scan' lists all.")
    say(text([_details(index, plugin, properties) for plugin in found], options.output))
    return 0


def run_fetch(options: argparse.Namespace) -> int:
    """Download the runtime's jars and list them."""
    from sluiceway.java_plugins.runtime_jars import KAFKA_HOME, RUNTIME_JARS
    from sluiceway.stack.plugin_install import fetch_runtime

    libs = fetch_runtime(options.to, say)
    show(None, [("JAR", "LICENSE"), *((jar.file_name, jar.license) for jar in RUNTIME_JARS)], "table")
    say(f"\n{len(RUNTIME_JARS)} jars in {libs}")
    if options.to is not None:
        say(f"Set {KAFKA_HOME}={libs.parent} for drivers, executors and the REST API.")
    return 0


def _add_list_options(parser: argparse.ArgumentParser) -> None:
    get.add_all_plugins(parser)
    _add_server_options(parser)


def _add_server_options(parser: argparse.ArgumentParser) -> None:
    add_output(parser)
    add_server(parser)
    parser.set_defaults(run=get.run, kind="plugins")


def _add_path_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--plugin-path", metavar="FOLDERS", help="folders, separated by commas (default: plugin.path of the worker file)"
    )
    parser.add_argument("--worker", type=Path, metavar="FILE", help="worker file (default: that of 'sluiceway up')")
    parser.add_argument("--no-java", action="store_true", help="start no Java: versions are those of the jars")


def _properties(options: argparse.Namespace) -> Mapping[str, str]:
    """Return the properties of the worker file, if one is needed."""
    return {} if options.plugin_path and options.worker is None else worker(options.worker).raw


def _index(options: argparse.Namespace, properties: Mapping[str, str]) -> PluginIndex:
    from sluiceway.config.parsing import parse_list
    from sluiceway.errors import ConfigError
    from sluiceway.java_plugins.index import HYBRID_WARN, PluginIndex
    from sluiceway.java_plugins.versions import check_versions

    folders = parse_list(options.plugin_path or properties.get("plugin.path"))
    if not folders:
        raise ConfigError("There is no plugin.path. Give one with --plugin-path, or a worker file with --worker.")
    missing = [folder for folder in folders if not Path(folder).expanduser().exists()]
    if missing:
        raise ConfigError(f"plugin.path names {', '.join(missing)}, which does not exist on this machine.")
    index = PluginIndex([Path(folder).expanduser() for folder in folders], properties.get("plugin.discovery", HYBRID_WARN))
    if not options.no_java:
        check_versions(index, index.locations)
    return index


def _rows(plugins: Sequence[Mapping[str, Any]]) -> Rows:
    return [
        ("CLASS", "TYPE", "VERSION", "USED", "MANIFEST", "LOCATION"),
        *(
            (
                each["class"],
                each["type"],
                each["version"],
                each["used"] or "-",
                "yes" if each["manifest"] else "no",
                each["location"],
            )
            for each in plugins
        ),
    ]


def _json(plugin: JavaPlugin, properties: Mapping[str, str]) -> dict[str, Any]:
    from sluiceway.java_plugins.finder import used_language

    return {
        "class": plugin.class_name,
        "type": plugin.kind,
        "version": plugin.version,
        "used": used_language(plugin, properties),
        "aliases": sorted(set(plugin.aliases)),
        "manifest": plugin.in_manifest,
        "location": str(plugin.location),
    }


def _details(index: PluginIndex, plugin: JavaPlugin, properties: Mapping[str, str]) -> dict[str, Any]:
    scan = index.scan(plugin.location)
    described = _json(plugin, properties)
    details = {**described, "java": scan.java_versions[plugin.class_name], "jars": [jar.name for jar in plugin.jars]}
    broken = scan.broken.get(plugin.class_name)
    return {**details, "problem": broken} if broken else details
