"""Announcements of changes, by the kernel."""

from __future__ import annotations

import shutil
from pathlib import Path

from sluiceway.connectors.folder.watch import FolderWatch
from support.eventually import eventually


def test_a_folder_that_is_deleted_and_made_again_is_watched(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    watch = FolderWatch(lambda: None)
    try:
        for name in ("first.log", "second.log"):
            folder.mkdir()
            watch.watch([str(folder)])
            watch.changed()
            (folder / name).write_text("line\n")
            eventually(lambda name=name: str(folder / name) in watch.changed(), what=f"the change of {name}")
            shutil.rmtree(folder)
            eventually(lambda: "" in watch.changed(), what="the end of the watch")
    finally:
        watch.close()
