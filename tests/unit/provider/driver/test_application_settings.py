from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.provider.driver.internal_topics import KafkaInternalTopics
from sluiceway.storage.model import ClusterState, ConnectorEntry


def test_a_shared_application_has_the_spark_settings_of_its_connectors_as_they_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    configs = {
        "b": {"spark.x": "2", "spark.db.password": "hunter2", "file": "f"},
        "a": {"spark.x": "1", "spark.y": "${env:P}"},
        "c": {"spark.x": "9"},
    }
    state = ClusterState(
        {name: ConnectorEntry(name, config, application="other" if name == "c" else "small") for name, config in configs.items()}
    )
    monkeypatch.setattr(KafkaInternalTopics, "_config_store", lambda self: nullcontext(SimpleNamespace(snapshot=lambda: state)))
    topics = KafkaInternalTopics(WorkerConfig.of({"bootstrap.servers": "nowhere:1", "plugin.path": str(tmp_path)}))
    assert topics.spark_settings("small") == {"spark.x": "1", "spark.y": "${env:P}", "spark.db.password": "hunter2"}
