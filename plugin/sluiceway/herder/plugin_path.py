"""Finds plugins in the folders of ``plugin.path``: Python packages, by extending ``sys.path``, and Java and Singer plugins."""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from sluiceway import discovery
from sluiceway.config.parsing import parse_list
from sluiceway.singer_plugins.programs import use_singer_plugins

log = logging.getLogger(__name__)

PLUGIN_PATH = "plugin.path"


def use_plugin_path(raw: Mapping[str, str]) -> list[Path]:
    """Make the plugins in the worker's ``plugin.path`` usable and return the folders added to ``sys.path``.

    As in Connect, a folder contains plugins directly or in subfolders (``pip install --target FOLDER/NAME``, or a folder of
    jars). Logs a warning for a missing folder. Installed packages take precedence.

    Raises ConnectError if ``plugin.discovery`` refuses a Java plugin.
    """
    folders = [Path(each).expanduser().absolute() for each in parse_list(raw.get(PLUGIN_PATH))]
    for folder in folders:
        if not folder.exists():
            log.warning("plugin.path names %s, which does not exist on this machine", folder)
    use_singer_plugins(folders)
    if folders:
        from sluiceway.java_plugins.finder import use_java_plugins

        use_java_plugins(folders, raw)
    added = [each for each in _with_packages(folders) if str(each) not in sys.path]
    sys.path += [str(each) for each in added]
    if added:
        importlib.invalidate_caches()
        discovery.plugins.cache_clear()
        log.info("Plugins are also loaded from %s", ", ".join(map(str, added)))
    return added


def _with_packages(folders: Iterable[Path]) -> list[Path]:
    found: list[Path] = []
    for folder in folders:
        if not folder.is_dir():
            continue
        below = sorted(each for each in folder.iterdir() if each.is_dir() and not (each / "__init__.py").exists())
        found += [each.resolve() for each in (folder, *below) if _has_python(each)]
    return found


def _has_python(folder: Path) -> bool:
    """Return whether a folder directly contains packages, modules or package metadata."""
    if folder.name.endswith((".dist-info", ".egg-info", "__pycache__")):
        return False
    patterns = ("*.py", "*/__init__.py", "*.dist-info", "*.egg-info")
    return any(next(folder.glob(pattern), None) is not None for pattern in patterns)
