"""Checks the values of a worker's properties that other modules read when a connector needs them."""

from __future__ import annotations

from sluiceway.config.definition import Type, parse_value
from sluiceway.config.worker import WorkerConfig
from sluiceway.herder.enrichment import CONVERTERS
from sluiceway.herder.override_policy import OverridePolicy
from sluiceway.herder.plugin_classes import plugin_class
from sluiceway.runtime.source import exactly_once, topic_creation


def check_worker(worker: WorkerConfig) -> None:
    """Raise ConfigError for an invalid value or a converter that is not installed, as Connect's worker does when it starts."""
    for key in CONVERTERS:
        parse_value(key, worker.raw.get(key), Type.CLASS, plugin_class)
    for definition in (exactly_once.WORKER, topic_creation.WORKER):
        definition.parse(worker.raw)
    OverridePolicy.of(worker.raw)
