"""A plugin folder with a source that counts, for tests of many tasks and of what happens to them."""

from __future__ import annotations

from pathlib import Path

COUNT_SOURCE = "counting.CountSource"

_PLUGIN = '''
"""A source whose task counts, a record each ``delay`` seconds (0.1), as far as the keys let it."""

import os
import time
from pathlib import Path

from sluiceway.api import SourceConnector, SourceRecord, SourceTask
from sluiceway.config.definition import ConfigDef


class CountTask(SourceTask):
    """``burn``: uses a processor and returns nothing else. ``hang``, ``die``: files while which it hangs, or ends its process.
    ``limit``: a file with the last number, or the word fail."""

    def start(self, config):
        self.props = config
        stored = self.context.offset_storage_reader.offset({"count": "er"})
        self.count = stored["count"] if stored else 0

    def stop(self):
        pass

    def poll(self):
        until = time.monotonic() + 0.5
        while "burn" in self.props and time.monotonic() < until:
            pass
        while self._exists("hang"):
            time.sleep(0.05)
        if self._exists("die"):
            os._exit(7)
        if "limit" in self.props:
            limit = Path(self.props["limit"]).read_text()
            if limit == "fail":
                raise ValueError("the file says so")
            if self.count >= int(limit):
                time.sleep(0.05)
                return None
        if "burn" not in self.props:
            self.context.wait(float(self.props.get("delay", "0.1")))
        self.count += 1
        return [SourceRecord({"count": "er"}, {"count": self.count}, self.props["topic"], value=str(self.count))]

    def _exists(self, key):
        return key in self.props and Path(self.props[key]).exists()


class CountSource(SourceConnector):
    task_class = CountTask

    def start(self, config):
        self.props = config

    def stop(self):
        pass

    def task_configs(self, max_tasks):
        return [dict(self.props)]

    @classmethod
    def config_def(cls):
        return ConfigDef([])
'''


def plugin_folder(folder: Path) -> Path:
    """Write the plugin into a new folder below ``folder``, for ``plugin.path``."""
    plugins = folder / "plugins"
    plugins.mkdir()
    (plugins / "counting.py").write_text(_PLUGIN)
    return plugins
