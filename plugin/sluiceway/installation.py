"""Says how to install an extra of Sluiceway: from the wheel, checkout, or index that this one was installed from."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import sluiceway

_PACKAGE = "sluiceway"
_WHEEL = f"sluiceway-{sluiceway.__version__}-py3-none-any.whl"


def install_command(extra: str, *more: str) -> str:
    """Return the shell command that installs an extra and further packages. For messages."""
    try:
        own = _own_arguments(origin(distribution(_PACKAGE)), extra)
    except PackageNotFoundError:  # modules alone, such as those of --py-files on an executor
        own = (f"{_WHEEL}[{extra}]",)
    return f"pip install {' '.join(shlex.quote(each) for each in (*own, *more))}"


def origin(installed: Distribution) -> dict[str, Any]:
    """Return how a distribution from a folder or URL was installed (PEP 610); empty for one from an index."""
    try:
        found: dict[str, Any] = json.loads(installed.read_text("direct_url.json") or "{}")
    except ValueError:
        return {}
    return found


def is_editable(installed: Distribution) -> bool:
    """Return whether a distribution's modules are in a folder of its author's."""
    return bool(origin(installed).get("dir_info", {}).get("editable"))


def _own_arguments(recorded: Mapping[str, Any], extra: str) -> tuple[str, ...]:
    """Return pip's arguments. A wheel or folder that is gone is named as the wheel of the documentation."""
    url = str(recorded.get("url", ""))
    if url.startswith("file:"):
        path = Path(unquote(urlsplit(url).path))
        if not path.exists():
            return (f"{_WHEEL}[{extra}]",)
        return (*(("-e",) if recorded.get("dir_info", {}).get("editable") else ()), f"{path}[{extra}]")
    vcs = recorded.get("vcs_info", {}).get("vcs")
    return (f"{_PACKAGE}[{extra}]{' @ ' if url else ''}{f'{vcs}+' if vcs else ''}{url}",)
