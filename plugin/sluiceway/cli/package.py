"""``sluiceway package``: packs a Python environment, and Java plugins, for the executors of a Spark cluster."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sluiceway.cli.common import Subparsers, say

if TYPE_CHECKING:
    from sluiceway.java_plugins.plugin_archive import PluginArchive
    from sluiceway.spark.python_archive import PythonArchive

_ALIAS, _PLUGINS_ALIAS = "environment", "plugins"


def register(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "package",
        help="pack a Python environment for a Spark cluster",
        description="Pack a Python environment that Spark unpacks on its executors (--archives), and print the settings for it. "
        "With --plugins, pack Java plugins with Kafka Connect's runtime, and those of Singer, into a second archive. "
        "Without --venv, the environment is a new one with what drivers and tasks import, in the versions installed here.",
    )
    parser.add_argument(
        "requirements",
        nargs="*",
        metavar="REQUIREMENT",
        help="further packages in pip's form: my-connectors==1.2, a wheel, a folder",
    )
    parser.add_argument("--extra", action="append", default=[], metavar="NAME", help="an extra of Sluiceway, such as jdbc")
    parser.add_argument("--output", type=Path, metavar="FILE", help="the archive (default: sluiceway-env-HASH.tar.gz)")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--python", help="the Python of the new environment (default: this one)")
    which.add_argument("--venv", type=Path, metavar="FOLDER", help="pack this virtual environment as it is")
    parser.add_argument(
        "--plugins",
        type=Path,
        nargs="?",
        const=Path(),
        metavar="FOLDER",
        help="also pack the Java and Singer plugins in this folder (default: that of 'sluiceway plugins install')",
    )
    parser.add_argument(
        "--python-prefix", metavar="FOLDER", help="where the cluster's machines have this Python, such as /usr (default: as here)"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Pack and print the settings."""
    from sluiceway.errors import ConfigError
    from sluiceway.spark.python_archive import pack_new, pack_venv, plugin_distributions

    if options.venv is not None:
        if options.requirements or options.extra:
            raise ConfigError("With --venv, the environment is packed as it is: install the requirements into it instead.")
        archive = pack_venv(options.venv, python_prefix=options.python_prefix, output=options.output, progress=say)
    else:
        archive = pack_new(
            options.requirements,
            extras=options.extra,
            python=options.python or sys.executable,
            python_prefix=options.python_prefix,
            output=options.output,
            progress=say,
        )
    plugins = _packed_plugins(options)
    packed = {each.partition(" ")[0] for each in archive.distributions}
    for line in (
        *_warnings(archive, [each for each in plugin_distributions() if each not in packed]),
        *_settings(archive, plugins),
    ):
        say(line)
    return 0


def _packed_plugins(options: argparse.Namespace) -> PluginArchive | None:
    """Pack the Java plugins if the options say so."""
    if options.plugins is None:
        return None
    from sluiceway.folders import state_home
    from sluiceway.java_plugins.installed import installed_plugins
    from sluiceway.java_plugins.plugin_archive import pack_plugins

    folder = installed_plugins(state_home()) if options.plugins == Path() else options.plugins.absolute()
    return pack_plugins(folder, options.output.parent if options.output is not None else Path())


def _warnings(archive: PythonArchive, missing: list[str]) -> list[str]:
    """Return lines about plugins that executors will not find."""
    lines = []
    if missing:
        lines.append(
            f"Not in the archive, although they have plugins: {', '.join(missing)}. To add them, name them as REQUIREMENT."
        )
    if archive.editable:
        lines.append(
            f"Not in the archive, because their installation is editable: {', '.join(archive.editable)}. Install them normally."
        )
    return lines


def _settings(archive: PythonArchive, plugins: PluginArchive | None) -> list[str]:
    """Return the lines that describe the archives and say how to use them."""
    from sluiceway.java_plugins.plugin_archive import PLUGINS, RUNTIME

    minor = ".".join(archive.python_version.split(".")[:2])
    size = archive.path.stat().st_size / 1e6
    archives, describing, using = f"{archive.path}#{_ALIAS}", [], []
    if plugins is not None:
        archives += f",{plugins.path}#{_PLUGINS_ALIAS}"
        describing = [f"Packed {plugins.path} ({plugins.path.stat().st_size / 1e6:.1f} MB): {', '.join(plugins.names)}"]
        home = [f"  spark.executorEnv.KAFKA_HOME=./{_PLUGINS_ALIAS}/{RUNTIME}"] if plugins.in_java else []
        using = [
            "  # Plugins, on each of them; and in the worker file, after the folders of other machines",
            *home,
            f"  plugin.path=...,./{_PLUGINS_ALIAS}/{PLUGINS}",
        ]
    return [
        f"Packed {archive.path} ({size:.1f} MB): Python {archive.python_version}, {', '.join(archive.distributions)}",
        *describing,
        f"Each machine of the cluster needs {archive.python_prefix}/bin/python{minor}: the archive links to it.",
        "",
        "Settings, for spark-defaults.conf, a connector's config, or the operator's conf:",
        "  # YARN",
        f"  spark.yarn.dist.archives={archives}",
        f"  spark.pyspark.python=./{_ALIAS}/bin/python",
        "  # Standalone",
        f"  spark.archives={archives}",
        f"  spark.pyspark.python=./{_ALIAS}/bin/python",
        "  # Kubernetes: install the same packages into the image of spark.kubernetes.container.image",
        *using,
    ]
