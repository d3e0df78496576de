"""Python's implementations accept each key of the classes that they stand for."""

from __future__ import annotations

import pytest

from conformance.config_keys import recorded
from sluiceway.connectors.cdc.columns import is_rule
from sluiceway.herder.validation import plugin_config

RECORDED = recorded()
EXAMPLES = {
    "column.mask.hash.([^.]+).with.salt.(.+)": "column.mask.hash.SHA-256.with.salt.x",
    "column.mask.with.(d+).chars": "column.mask.with.3.chars",
    "column.truncate.to.(d+).chars": "column.truncate.to.3.chars",
}
"""Names of Debezium's options that stand for many, with one of these."""


@pytest.mark.parametrize("name", RECORDED)
def test_each_key_of_the_java_class_is_accepted(name: str) -> None:
    found = {key.name for key in plugin_config(name)}
    # Debezium calls internal.* its own: they may change with each version, and a warning names those that a config sets.
    missing = {key for key in RECORDED[name] if key not in found and not key.startswith("internal.")}
    assert missing - EXAMPLES.keys() == set()
    assert all(is_rule(EXAMPLES[key]) for key in missing)
