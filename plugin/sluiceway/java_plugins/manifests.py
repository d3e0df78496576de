"""Reads what the jars of a plugin say of themselves: ServiceLoader manifests (KIP-898) and the version. Starts no JVM."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from sluiceway.discovery import UNDEFINED_VERSION
from sluiceway.java_plugins.class_files import ClassPath
from sluiceway.java_plugins.plugin_types import SERVICES

_KAFKA = "org.apache.kafka."
_IMPLEMENTATION = re.compile(r"^Implementation-Version:\s*(\S+)", re.MULTILINE)
_FILE_NAME = re.compile(r"-(\d[\w.+-]*)\.(?:jar|zip)$")


def services(classes: ClassPath) -> dict[str, set[str]]:
    """Return the classes that the manifests list, each with the kinds of plugins it is listed as."""
    found: dict[str, set[str]] = {}
    for service, kind in SERVICES.items():
        for _jar, text in classes.text(f"META-INF/services/{service}"):
            for line in text.splitlines():
                name = line.partition("#")[0].strip()
                if name:
                    found.setdefault(name, set()).add(kind)
    return found


def jar_versions(classes: ClassPath, jars: Sequence[Path]) -> dict[str, str]:
    """Return the version of each jar by its path: that of its manifest, or the one in its file name."""
    manifests = dict(classes.text("META-INF/MANIFEST.MF"))
    found: dict[str, str] = {}
    for jar in map(str, jars):
        match = _IMPLEMENTATION.search(manifests.get(jar, "")) or _FILE_NAME.search(jar)
        if match:
            found[jar] = match[1]
    return found


def presumed_version(name: str, jar_version: str | None, connect_version: str) -> str:
    """Return a plugin's probable version. Only an instance of the class can tell for certain."""
    return connect_version if name.startswith(_KAFKA) else jar_version or UNDEFINED_VERSION
