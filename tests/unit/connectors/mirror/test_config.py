from __future__ import annotations

import pytest

from sluiceway.api import ExactlyOnceSupport
from sluiceway.connectors.mirror.client_properties import client_properties
from sluiceway.connectors.mirror.config import MirrorConfig, OffsetSyncsConfig, check
from sluiceway.connectors.mirror.policy import DefaultReplicationPolicy
from sluiceway.connectors.mirror.source import MirrorSourceConnector
from sluiceway.discovery import connector_class
from sluiceway.errors import ConfigError

BASE = {
    "name": "mm",
    "connector.class": "MirrorSource",
    "source.cluster.alias": "A",
    "target.cluster.alias": "B",
    "source.cluster.bootstrap.servers": "s:1",
    "target.cluster.bootstrap.servers": "t:1",
}


class ShoutingPolicy(DefaultReplicationPolicy):
    def format_remote_topic(self, alias: str, topic: str) -> str:
        return super().format_remote_topic(alias, topic).upper()


def config(**more: str) -> dict[str, str]:
    return {**BASE, **{key.replace("__", "-").replace("_", "."): value for key, value in more.items()}}


def errors(**more: str) -> dict[str, list[str]]:
    return {name: result.errors for name, result in check(config(**more)).items() if result.errors}


def test_the_connector_is_found_by_alias_class_name_and_java_class() -> None:
    names = ("MirrorSource", "MirrorSourceConnector", "org.apache.kafka.connect.mirror.MirrorSourceConnector")
    assert {connector_class(name) for name in names} == {MirrorSourceConnector}


def test_the_earlier_dotted_path_still_names_the_connector() -> None:
    assert connector_class("sluiceway.connectors.mirror.connector.MirrorSourceConnector") is MirrorSourceConnector


def test_a_minimal_config_is_valid() -> None:
    assert errors() == {}


def test_exactly_once_requires_read_committed() -> None:
    assert "isolation.level set to 'read_committed'" in errors(exactly_once_support="required")["exactly.once.support"][0]
    assert not errors(exactly_once_support="required", source_consumer_isolation_level="read_committed")
    support = MirrorSourceConnector().exactly_once_support
    assert support(config()) is ExactlyOnceSupport.UNSUPPORTED
    assert support(config(consumer_isolation_level="read_committed")) is ExactlyOnceSupport.SUPPORTED


def test_offset_sync_keys_conflict_with_disabled_offset_syncs() -> None:
    off = {"emit.offset-syncs.enabled": "false"}
    found = check({**BASE, **off, "offset-syncs.topic.location": "target"})["emit.offset-syncs.enabled"].errors
    assert found == ["MirrorSourceConnector can't setup offset-syncs feature while emit.offset-syncs.enabled set to false"]
    assert not check({**BASE, **off})["emit.offset-syncs.enabled"].errors


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("", "Configuration 'metric.names.formats' must not be empty. Valid values include: [legacy, new]"),
        ("new,new", "Configuration 'metric.names.formats' values must not be duplicated."),
        ("new,", "Configuration 'metric.names.formats' values must not be empty."),
        ("a,,b", "Invalid value a for configuration metric.names.formats: String must be one of: legacy, new"),
        ("legacy,x", "Invalid value x for configuration metric.names.formats: String must be one of: legacy, new"),
    ],
)
def test_the_first_error_in_a_list_is_reported(value: str, message: str) -> None:
    assert errors(metric_names_formats=value) == {"metric.names.formats": [message]}


def test_classes_that_do_not_exist_are_reported() -> None:
    message = "Invalid value x.y for configuration replication.policy.class: Class x.y could not be found."
    assert errors(replication_policy_class="x.y") == {"replication.policy.class": [message]}
    assert not errors(
        sasl_login_callback_handler_class="org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
    )


def test_a_class_that_is_not_a_policy_is_refused() -> None:
    wrong = config(replication_policy_class="org.apache.kafka.connect.mirror.DefaultTopicFilter")
    with pytest.raises(ConfigError, match=r"replication\.policy\.class: not a ReplicationPolicy"):
        MirrorConfig(wrong)


def test_a_policy_may_be_a_python_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluiceway.connectors.mirror.policy.ShoutingPolicy", ShoutingPolicy, raising=False)
    mirror = MirrorConfig(config(replication_policy_class="sluiceway.connectors.mirror.policy.ShoutingPolicy"))
    assert mirror.remote("t") == "A.T"


def test_a_converter_must_implement_the_converter_interface() -> None:
    message = "Class class org.apache.kafka.connect.transforms.RegexRouter does not implement the Converter interface"
    assert errors(key_converter="org.apache.kafka.connect.transforms.RegexRouter") == {"key.converter": [message]}
    assert not errors(key_converter="ByteArrayConverter", header_converter="org.apache.kafka.connect.json.JsonConverter")


def test_the_most_specific_client_prefix_wins() -> None:
    given = config(
        source_cluster_foo="1",
        source_cluster_security_protocol="SSL",
        consumer_fetch_min_bytes="2",
        source_consumer_fetch_min_bytes="3",
        consumer_override_x="y",
        admin_retries="4",
        target_admin_retries="5",
    )
    consumer = client_properties(given, "source", "consumer")
    assert consumer == {"bootstrap.servers": "s:1", "security.protocol": "SSL", "fetch.min.bytes": "3"}
    assert client_properties(given, "source", "admin")["retries"] == "4"
    assert client_properties(given, "target", "admin") == {"bootstrap.servers": "t:1", "retries": "5"}


def test_missing_bootstrap_servers_are_reported() -> None:
    given = {key: value for key, value in BASE.items() if key != "target.cluster.bootstrap.servers"}
    with pytest.raises(ConfigError, match=r'"target\.cluster\.bootstrap\.servers"'):
        client_properties(given, "target", "admin")


def test_client_ids_contain_the_connector_and_task() -> None:
    assert (
        MirrorConfig(BASE).client("source", "admin", "replication-source-admin")["client.id"]
        == "A->B|mm|replication-source-admin"
    )
    task = MirrorConfig({**BASE, "task.index": "2"})
    assert task.client("source", "consumer", "replication-consumer")["client.id"] == "A->B|mm-2|replication-consumer"


def test_the_offset_syncs_topic_is_named_after_the_other_cluster() -> None:
    assert MirrorConfig(BASE).offset_syncs == OffsetSyncsConfig("mm2-offset-syncs.B.internal", "source", 3, 100)
    target = MirrorConfig({**BASE, "offset-syncs.topic.location": "target", "offset.lag.max": "7"})
    assert target.offset_syncs == OffsetSyncsConfig("mm2-offset-syncs.A.internal", "target", 3, 7)
    assert MirrorConfig({**BASE, "emit.offset-syncs.enabled": "false"}).offset_syncs is None


@pytest.mark.parametrize(
    "more",
    [{"refresh_topics_enabled": "false"}, {"refresh_topics_interval_seconds": "0"}, {"refresh_topics_interval_seconds": "-1"}],
)
def test_periodic_jobs_can_be_disabled(more: dict[str, str]) -> None:
    assert MirrorConfig(BASE).refresh_interval == 600
    assert MirrorConfig(config(**more)).refresh_interval is None


def test_a_disabled_connector_has_no_tasks_and_connects_to_no_cluster() -> None:
    connector = MirrorSourceConnector()
    connector.start(config(enabled="false"))
    assert connector.task_configs(3) == []
    connector.stop()
