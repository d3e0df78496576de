"""Runs a tap: finds its program, asks for its catalog, and starts it with config, catalog, and state in private files.

Runs on executors, and to validate a config where the connector's other code runs.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sluiceway.connectors.singer.catalog import Catalog
from sluiceway.connectors.singer.config import CATALOG, WITH_PROPERTIES, WITHOUT, Options
from sluiceway.connectors.singer.process import TapProcess
from sluiceway.connectors.singer.program import command_of, write_private
from sluiceway.errors import ConfigError, ConnectError


class Interrupted(Exception):  # noqa: N818 (no failure)
    """``interrupt`` was called."""


class Tap:
    """A tap with its config. One thread runs it; others may call ``interrupt``. ``folder`` is private to this user.

    Raises ConnectError if the program is not found or cannot be installed.
    """

    def __init__(self, options: Options, folder: Path, *, install: bool = True) -> None:
        self._options = options
        self._folder = folder
        self._lock = threading.Lock()
        self._process: TapProcess | None = None
        self._interrupted = threading.Event()
        self._command = command_of(options.tap, install=install)
        self._config = self._write("config.json", options.tap.settings)

    def catalog(self) -> Catalog | None:
        """Return the catalog with the selection; None for a tap without one. Raises ConnectError and Interrupted."""
        options = self._options
        if options.catalog_option == WITHOUT:
            return None
        found = self.discover() if options.catalog is None else _given(options.catalog)
        return options.selection.apply(found, old_form=options.catalog_option == WITH_PROPERTIES)

    def discover(self) -> Any:
        """Return the catalog that the tap prints. Raises ConnectError and Interrupted."""
        with self.running("--discover") as process:
            data = b"".join(process.chunks(gather=False))
            self._check_interrupted()
            code = process.wait()
            if code:
                raise process.failure(code, " --discover")
        try:
            return json.loads(data)
        except ValueError:
            raise ConnectError(
                f"{self._options.name} --discover has printed no JSON. If the tap has no discovery, give {CATALOG}, or set "
                "singer.catalog.option=none."
            ) from None

    @contextmanager
    def run(self, catalog: Catalog | None, state: str | None) -> Iterator[TapProcess]:
        """Run the tap, and end it with the context."""
        arguments = []
        if catalog is not None:
            option = "--properties" if self._options.catalog_option == WITH_PROPERTIES else "--catalog"
            arguments += [option, self._write("catalog.json", catalog)]
        if state is not None:
            arguments += ["--state", self._write("state.json", state)]
        with self.running(*arguments) as process:
            yield process

    @contextmanager
    def running(self, *arguments: str) -> Iterator[TapProcess]:
        """Start the tap with its config and these arguments, and end it with the context. Raises ConnectError, Interrupted."""
        self._check_interrupted()
        command = [*self._command, "--config", self._config, *arguments]
        process = TapProcess(self._options.name, command, self._options.tap.secrets())
        with self._lock:
            self._process = process
        try:
            self._check_interrupted()
            yield process
        finally:
            with self._lock:
                self._process = None
            process.close()

    def interrupt(self) -> None:
        """End what runs, and every wait, soon. Thread-safe."""
        self._interrupted.set()
        with self._lock:
            if self._process is not None:
                self._process.interrupt()

    def wait(self, seconds: float) -> bool:
        """Wait so long. Return True if ``interrupt`` was called."""
        return self._interrupted.wait(seconds)

    @property
    def interrupted(self) -> bool:
        return self._interrupted.is_set()

    def _check_interrupted(self) -> None:
        if self._interrupted.is_set():
            raise Interrupted

    def _write(self, name: str, content: Any) -> str:
        return write_private(self._folder / name, content)


def _given(catalog: str) -> Any:
    """Return the catalog of a config. Raises ConfigError."""
    try:
        return json.loads(catalog if catalog.lstrip().startswith("{") else Path(catalog).expanduser().read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(CATALOG, catalog, f"cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(CATALOG, None, f"is no JSON: {error}") from None
