"""Client overrides and consumer groups, with the messages of Kafka Connect 4.3.0."""

from __future__ import annotations

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError, InvalidConfigError
from sluiceway.herder.override_policy import OverridePolicy
from sluiceway.herder.validation import checked, validate_config

SOURCE = {"connector.class": "FileStreamSource", "name": "a", "topic": "t"}
SINK = {"connector.class": "FileStreamSink", "name": "a", "topics": "t"}
POLICY = "connector.client.config.override.policy"


def findings(config: dict[str, str], **worker: str) -> dict[str, tuple[str, ...]]:
    infos = validate_config(config, WorkerConfig.of({key.replace("__", "."): value for key, value in worker.items()}))
    return {info.value.name: info.value.errors for info in infos.configs if info.value is not None and info.value.errors}


def refused(policy: str, key: str) -> str:
    return f"The '{policy}' policy does not allow '{key}' to be overridden in the connector configuration."


@pytest.mark.parametrize(
    ("policy", "allowed"),
    [
        ({}, {"acks", "sasl.mechanism", "sasl.jaas.config", "security.protocol"}),
        ({POLICY: "All"}, {"acks", "sasl.mechanism", "sasl.jaas.config", "security.protocol"}),
        ({POLICY: "None"}, set()),
        ({POLICY: "Principal"}, {"sasl.mechanism", "sasl.jaas.config", "security.protocol"}),
        (
            {POLICY: "org.apache.kafka.connect.connector.policy.PrincipalConnectorClientConfigOverridePolicy"},
            {"sasl.mechanism", "sasl.jaas.config", "security.protocol"},
        ),
        ({POLICY: "Allowlist", "connector.client.config.override.allowlist": "acks, x"}, {"acks"}),
        ({POLICY: "Allowlist"}, set()),
    ],
)
def test_a_connector_overrides_only_settings_that_the_policy_allows(policy: dict[str, str], allowed: set[str]) -> None:
    values = {"acks": "1", "sasl.mechanism": "PLAIN", "sasl.jaas.config": "s3cret", "security.protocol": "SASL_SSL"}
    name = OverridePolicy.of(policy).name
    found = findings(SOURCE | {f"producer.override.{key}": value for key, value in values.items()}, **policy)
    assert found == {f"producer.override.{key}": (refused(name, key),) for key in values if key not in allowed}
    assert "s3cret" not in str(found)


def test_overrides_of_clients_that_the_connector_does_not_use_are_ignored() -> None:
    assert findings(SINK | {"producer.override.acks": "1", "admin.override.x": "y"}, **{POLICY: "None"}) == {}
    found = findings(SINK | {"consumer.override.nobody.knows": "1"}, **{POLICY: "None"})
    assert found == {"consumer.override.nobody.knows": (refused("None", "nobody.knows"),)}


def test_a_refused_override_is_reported_with_all_other_errors_and_nothing_is_stored() -> None:
    worker = WorkerConfig.of({POLICY: "None"})
    with pytest.raises(InvalidConfigError) as caught:
        checked(SOURCE | {"producer.override.acks": "1", "tasks.max": "0"}, worker)
    assert refused("None", "acks") in caught.value.errors
    assert len(caught.value.errors) == 2


def test_an_unknown_policy_raises_an_error_with_the_known_policies() -> None:
    with pytest.raises(ConfigError, match="Must be one of All, None, Principal, Allowlist"):
        OverridePolicy.of({POLICY: "org.example.Mine"})


def test_a_sink_may_not_join_the_group_of_the_workers() -> None:
    group = "consumer.override.group.id"
    conflict = ("Consumer group workers conflicts with Connect worker group workers",)
    assert findings(SINK | {group: "workers"}, group__id="workers") == {group: conflict}
    assert findings(SINK | {group: "others"}, group__id="workers") == {}
    assert findings(SOURCE | {group: "workers"}, group__id="workers") == {}


def test_a_sink_whose_own_group_would_be_that_of_the_workers_is_refused_by_its_name() -> None:
    found = findings(SINK, group__id="connect-a")
    assert found == {"name": ("Consumer group for sink connector named a conflicts with Connect worker group connect-a",)}
    assert findings(SINK | {"consumer.override.group.id": "mine"}, group__id="connect-a") == {}


def test_the_workers_consumer_group_counts_as_a_sinks_group() -> None:
    conflict = ("Consumer group for sink connector named a conflicts with Connect worker group workers",)
    assert findings(SINK, group__id="workers", consumer__group__id="workers") == {"name": conflict}
    assert findings(SINK, group__id="connect-a", consumer__group__id="others") == {}
    own = SINK | {"consumer.override.group.id": "mine"}
    assert findings(own, group__id="workers", consumer__group__id="workers") == {}
