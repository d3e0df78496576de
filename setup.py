"""Adds the compiled Java classes that run plugins to the package. All other settings are in setup.cfg."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

sys.path.insert(0, str(Path(__file__).parent / "plugin"))
Path(__file__).with_name("build").mkdir(exist_ok=True)  # egg_base in setup.cfg


class BuildWithHelper(build_py):
    """Compiles the Java classes if there is a JDK and Connect's runtime; without them, they are compiled on first use."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        from sluiceway.errors import MissingToolError
        from sluiceway.java_plugins.helper_jar import compiled, jar_name

        try:
            content = compiled(_connect_jars())
        except MissingToolError as error:
            self.warn(f"The package will not contain {jar_name()}: {error}")
            return
        Path(self.build_lib, "sluiceway", "java_plugins", jar_name()).write_bytes(content)


def _connect_jars() -> list[Path]:
    """Return the jars of $KAFKA_HOME, or those that ``sluiceway plugins fetch-runtime`` has downloaded."""
    from sluiceway.folders import cache_home

    homes = sorted((cache_home() / "java-plugins").glob("runtime-*"))
    if home := os.environ.get("KAFKA_HOME"):
        homes.append(Path(home))
    return sorted(homes[-1].glob("libs/*.jar")) if homes else []


setup(cmdclass={"build_py": BuildWithHelper})
