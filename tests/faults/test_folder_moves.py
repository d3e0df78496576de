"""The folder source, exactly once, killed between Kafka's acknowledgement of a file's last record and the file's end.

The task runs in a process that kills itself before, within, or after the move or the deletion of a file.
"""

from __future__ import annotations

import os
import random
import signal
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sluiceway.connectors.folder import after_read
from sluiceway.connectors.folder.connector import FolderSourceConnector
from sluiceway.connectors.folder.local_files import LocalStorage
from support.eventually import eventually
from support.exactly_once import exactly_once_worker
from support.faults.rows import NewRow
from support.kafka import Kafka
from support.source_process import SourceProcess, task_config
from support.transactions import seen

pytestmark = pytest.mark.kafka

KILLS = int(os.environ.get("KILLS", "50"))
FILES = 3  # for each kill
OTHER_FILE_SYSTEM = "/dev/shm"  # noqa: S108 (a folder of its own is made there)

#: The function at whose call the process dies, and whether after it.
POINTS = {
    "move": [("move", False), ("_link", True), ("move", True)],
    "delete": [("delete", False), ("delete", True)],
}


def die_at(name: str, after: bool, call: int) -> None:
    """Let this process die at a call of a function of ``after_read``, or of the storage that has its functions."""
    holder: Any = after_read if name.startswith("_") else LocalStorage
    function: Callable[..., Any] = getattr(holder, name)
    calls = 0

    def die(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls < call:
            return function(*arguments)
        if after:
            function(*arguments)
        return os.kill(os.getpid(), signal.SIGKILL)

    setattr(holder, name, die if holder is after_read else staticmethod(die))


def lines_of(bootstrap: str, topic: str) -> dict[str, list[str]]:
    """Return the lines of each file that consumers see, in their order."""
    found = defaultdict(list)
    for message in seen(bootstrap, topic):
        found[(message.key() or b"").decode()].append((message.value() or b"").decode())
    return dict(found)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("elsewhere", [False, True], ids=["one file system", "another file system"])
@pytest.mark.parametrize("action", POINTS)
def test_killed_while_files_are_finished_each_is_in_the_topic_and_then_away(
    kafka_bootstrap: str,
    unique: Callable[[str], str],
    row: NewRow,
    chance: random.Random,
    tmp_path: Path,
    action: str,
    elsewhere: bool,
) -> None:
    if elsewhere and action == "delete":
        pytest.skip("a deletion has one file system")
    where = f", to {'another' if elsewhere else 'the same'} file system" if action == "move" else ""
    made = row(f"1-3: files that are {action}d when they were read{where}, {KILLS} kills at that", "0 lost, 0 duplicated")
    topic, folder = unique("folder-moves"), tmp_path / "in"
    with tempfile.TemporaryDirectory(dir=OTHER_FILE_SYSTEM if elsewhere else tmp_path) as other:
        out = Path(other, "done")
        folder.mkdir()
        out.mkdir()
        Kafka(kafka_bootstrap).create(topic)
        worker = exactly_once_worker(kafka_bootstrap, unique) | {"offset.flush.interval.ms": "100"}
        settings = {
            **{"name": topic, "connector.class": "FolderSource", "topic": topic, "mode": "files", "paths": str(folder)},
            **{"record.key": "file", "after.read": action, "complete.when": "renamed", "scan.interval.ms": "50"},
            **({"after.read.folder": str(out)} if action == "move" else {}),
        }
        config = task_config(FolderSourceConnector, settings)
        expected: dict[str, list[str]] = {}
        for number in range(KILLS):
            for each in range(FILES):
                name = f"file{number}-{each}.txt"
                lines = [f"{number} {each} {line}" for line in range(1 + chance.randrange(50))]
                (out / name).write_text("of somebody else") if each == 0 else None
                (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
                (tmp_path / name).rename(folder / name)
                expected[str(folder / name)] = lines
            point, after = chance.choice(POINTS[action])
            with SourceProcess(config, worker, die_at, (point, after, chance.randint(1, FILES))) as task:
                eventually(lambda: not task.alive, what=f"the end of the process at {point}")
            there, found = {path.name for path in folder.iterdir()}, lines_of(kafka_bootstrap, topic)
            for path, lines in expected.items():
                assert Path(path).name in there or found.get(path) == lines, f"{path} was {action}d too early"
        with SourceProcess(config, worker) as task:
            eventually(lambda: not list(folder.iterdir()) or not task.alive, what="that all files are finished")
            assert task.alive
        found = lines_of(kafka_bootstrap, topic)
        made.seen = f"{sum(map(len, found.values()))} lines of {len(expected)} files"
        made.lost = sum(len(set(lines) - set(found.get(path, []))) for path, lines in expected.items())
        made.duplicated = sum(len(lines) - len(set(lines)) for lines in found.values())
        assert found == expected
        if action == "move":
            contents = defaultdict(list)
            for path_out in out.iterdir():
                contents[path_out.name.partition(".txt")[0]].append(path_out.read_text())
            for path, lines in expected.items():
                stem = Path(path).name.partition(".txt")[0]
                own = "".join(f"{line}\n" for line in lines)
                assert sorted(contents[stem]) == sorted([own, *["of somebody else"] * stem.endswith("-0")])
