"""Records what Debezium's published transforms make of the records of ``debezium_cases``, for the unit tests.

Run in tests: python -m support.record_debezium
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from random import Random

from sluiceway.java_plugins.hosts import task_host
from support.debezium_cases import CASES, records_for
from support.debezium_transforms import java_plugin, recorded
from support.java_plugins import DEBEZIUM_POSTGRES, fetch_runtime, plugin_folder

RECORDED = Path(__file__).parents[1] / "unit/transforms/debezium/recorded.json"
COUNT = 12
"""Records for each config."""


def main() -> None:
    """Write the outcomes by transform, in the order of its configs."""
    fetch_runtime()
    with tempfile.TemporaryDirectory() as folder, task_host("recording"):
        location = plugin_folder(Path(folder), "debezium", DEBEZIUM_POSTGRES)
        found = {}
        for name, configs in CASES.items():
            plugin = java_plugin(f"io.debezium.transforms.{name}", location)
            found[name] = [
                recorded(plugin, config, records_for(name, Random(seed), COUNT, recorded=True))  # noqa: S311
                for seed, config in enumerate(configs)
            ]
    RECORDED.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
