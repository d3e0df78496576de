"""Keys of the connectors for AWS, the meaning of errors, and forms of records, without a server."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from sluiceway.api import SinkRecord
from sluiceway.connectors.aws import KinesisSinkConnector, KinesisSourceConnector, SqsSinkConnector, SqsSourceConnector
from sluiceway.connectors.aws.client import ThrottledError, answered_at, code_of, meaning_of, opened
from sluiceway.connectors.aws.connection import Account, account_of
from sluiceway.connectors.aws.kinesis_options import options_of
from sluiceway.connectors.aws.kinesis_sink import partition_key_of
from sluiceway.connectors.aws.sqs_queue import sqs_account
from sluiceway.connectors.aws.sqs_sink import id_of
from sluiceway.connectors.aws.sqs_source import CONFIG
from sluiceway.connectors.errors import LoginError, RefusedError, UnreachableError
from sluiceway.errors import ConfigError, ConnectError

QUEUE = {"sqs.url": "q"}
STREAM = {"kinesis.stream": "s"}
KEY = {"aws.access.key.id": "AKIA", "aws.secret.access.key": "hush"}


def errors(connector: Any, config: dict[str, str]) -> list[str]:
    """Return the names of keys with errors, and check that a task's options refuse the same config."""
    found = [name for name, each in connector.check(config).items() if each.errors]
    if found and connector is not KinesisSourceConnector:  # whose start asks Kinesis
        with pytest.raises(ConfigError):
            connector().start(config)
    return found


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"aws.access.key.id": "i"}, "aws.secret.access.key"),
        ({"aws.secret.access.key": "s"}, "aws.access.key.id"),
        ({"aws.secret.key.id": "s"}, "aws.access.key.id"),
        ({**KEY, "aws.secret.key.id": "s"}, "aws.secret.key.id"),
        ({"aws.session.token": "t"}, "aws.access.key.id"),
        ({"aws.role.external.id": "x"}, "aws.role.arn"),
        ({"aws.sts.endpoint.url": "http://s"}, "aws.role.arn"),
        ({**KEY, "aws.profile": "p"}, "aws.profile"),
        ({"sqs.region": ""}, "sqs.region"),
        *(
            ({"sqs.endpoint.url": each}, "sqs.endpoint.url")
            for each in ("s", "ftp://s", "http://", "http://u:hush@s", "http://s:0")
        ),
        *(
            ({"sqs.url": each}, "sqs.url")
            for each in ("", "a b", "ftp://h/q", "https:///q", "https://u:hush@h/1/q", "q,q", "a/q,q")
        ),
        ({"sqs.url": "https://h/1/" + "q" * 81}, "sqs.url"),
        ({"sqs.messages.max": "11"}, "sqs.messages.max"),
        ({"sqs.waittime.seconds": "21"}, "sqs.waittime.seconds"),
        ({"sqs.visibility.timeout.seconds": "9"}, "sqs.visibility.timeout.seconds"),
        ({"sqs.prefetch": "0"}, "sqs.prefetch"),
        ({"sqs.values": "json"}, "sqs.values"),
        ({"kafka.topic": ""}, "kafka.topic"),
    ],
)
def test_keys_of_the_sqs_source_are_checked(config: dict[str, str], key: str) -> None:
    assert errors(SqsSourceConnector, {**QUEUE, **config}) == [key]
    assert "hush" not in str([each.errors for each in SqsSourceConnector.check({**QUEUE, **config}).values()])


@pytest.mark.parametrize(
    "config",
    [
        *({"sqs.url": each} for each in ("q", "a,b.fifo", "https://sqs.eu-central-1.amazonaws.com/123456789012/q.fifo")),
        {**KEY, "aws.session.token": "t", "aws.role.arn": "arn:aws:iam::1:role/r", "aws.role.external.id": "x"},
        {"aws.access.key.id": "i", "aws.secret.key.id": "s"},
    ],
)
def test_good_configs_are_taken(config: dict[str, str]) -> None:
    assert errors(SqsSourceConnector, {**QUEUE, **config}) == []


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"kinesis.stream": "a/b"}, "kinesis.stream"),
        ({"kinesis.position": "first"}, "kinesis.position"),
        ({"kinesis.position": "AT_TIMESTAMP"}, "kinesis.shard.timestamp"),
        ({"kinesis.shard.timestamp": "2026-01-31"}, "kinesis.shard.timestamp"),
        ({"kinesis.position": "AT_TIMESTAMP", "kinesis.shard.timestamp": "2026-13-01"}, "kinesis.shard.timestamp"),
        ({"kinesis.trimmed": "ignore"}, "kinesis.trimmed"),
        ({"kinesis.record.limit": "10001"}, "kinesis.record.limit"),
    ],
)
def test_keys_of_the_kinesis_source_are_checked(config: dict[str, str], key: str) -> None:
    assert errors(KinesisSourceConnector, {**STREAM, **config}) == [key]


@pytest.mark.parametrize(
    ("connector", "config", "key"),
    [
        (SqsSinkConnector, {**QUEUE, "sqs.url": "a,b"}, "sqs.url"),
        (SqsSinkConnector, {**QUEUE, "sqs.message.group": "topic"}, "sqs.message.group"),
        (SqsSinkConnector, {**QUEUE, "sqs.null.values": "delete"}, "sqs.null.values"),
        (KinesisSinkConnector, {**STREAM, "kinesis.partition.key": "${value}"}, "kinesis.partition.key"),
        (KinesisSinkConnector, {**STREAM, "kinesis.request.records": "501"}, "kinesis.request.records"),
    ],
)
def test_keys_of_the_sinks_are_checked(connector: Any, config: dict[str, str], key: str) -> None:
    assert errors(connector, config) == [key]


@pytest.mark.parametrize(
    ("given", "since"),
    [
        ({}, 0),
        ({"kinesis.position": "trim_horizon"}, 0),
        ({"kinesis.position": "LATEST"}, None),
        ({"kinesis.position": "AT_TIMESTAMP", "kinesis.shard.timestamp": "1790000000000"}, 1_790_000_000_000),
        ({"kinesis.position": "AT_TIMESTAMP", "kinesis.shard.timestamp": "2026-09-21T14:13:20Z"}, 1_790_000_000_000),
        ({"kinesis.position": "AT_TIMESTAMP", "kinesis.shard.timestamp": "2026-09-21T14:13:20"}, 1_790_000_000_000),
    ],
)
def test_a_stream_begins_where_the_config_says(given: dict[str, str], since: int | None) -> None:
    assert options_of({**STREAM, **given}).since == since


def test_the_region_may_be_that_of_the_url() -> None:
    def region(**given: str) -> str | None:
        return sqs_account(CONFIG.parse({name.replace("_", "."): value for name, value in given.items()})).region

    assert region(sqs_url="https://sqs.eu-central-1.amazonaws.com/1/q") == "eu-central-1"
    assert region(sqs_url="https://sqs.eu-central-1.amazonaws.com/1/q", sqs_region="us-east-1") == "us-east-1"
    assert region(sqs_url="q") is None


def test_no_repr_shows_a_secret() -> None:
    values = CONFIG.parse({**QUEUE, **KEY, "aws.session.token": "hush-token"})
    account = account_of("sqs", values)
    assert (account.secret_key, account.session_token) == ("hush", "hush-token")
    assert "hush" not in repr(account)
    assert "AKIA" not in repr(account)


ACCOUNT = Account("sqs", "eu-west-1", access_key="i", secret_key="s")


def answer(code: str, message: str = "m", status: int = 400, **more: Any) -> dict[str, Any]:
    return {"Error": {"Code": code, "Message": message, **more}, "ResponseMetadata": {"HTTPStatusCode": status}}


@pytest.mark.parametrize(
    ("given", "kind", "text"),
    [
        (answer("RequestThrottled"), ThrottledError, "RequestThrottled"),
        (answer("Whatever", status=503), ThrottledError, "Whatever"),
        (
            answer("AWS.SimpleQueueService.NonExistentQueue", QueryErrorCode="QueueDoesNotExist"),
            RefusedError,
            "QueueDoesNotExist",
        ),
        (answer("SignatureDoesNotMatch", "first\nsecond: token", 403), LoginError, "first. Check aws.access.key.id"),
        (answer("AccessDenied", status=403), LoginError, "Give the credentials the right"),
        (answer("ValidationException"), RefusedError, "ValidationException"),
    ],
)
def test_answers_have_a_meaning(given: dict[str, Any], kind: type, text: str) -> None:
    error = meaning_of(given, ACCOUNT)
    assert type(error) is kind
    assert text in str(error)
    assert "token" not in str(error)
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 (our own)
    assert (type(copy), str(copy), vars(copy)) == (kind, str(error), vars(error))


def test_codes_lose_their_prefixes() -> None:
    assert code_of({"Code": "com.amazonaws.sqs#QueueDoesNotExist"}) == "QueueDoesNotExist"
    assert code_of({"Code": "AWS.SimpleQueueService.BatchRequestTooLong"}) == "BatchRequestTooLong"
    assert code_of({}) == ""


def test_the_time_of_an_answer_is_the_servers() -> None:
    given = {"ResponseMetadata": {"HTTPHeaders": {"date": "Mon, 21 Sep 2026 14:13:20 GMT"}}}
    assert answered_at(given, 7.0) == 1_790_000_000
    assert answered_at({}, 7.0) == 7.0


def test_a_client_without_a_region_or_profile_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("botocore")
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_DEFAULT_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    with pytest.raises(ConnectError, match=r"Set sqs\.region"):
        opened(Account("sqs", access_key="i", secret_key="s"))
    with pytest.raises(LoginError, match="nobody") as error:
        opened(Account("sqs", "eu-west-1", profile="nobody"))
    assert error.value.key == "aws.profile"
    assert issubclass(UnreachableError, OSError)


@pytest.mark.parametrize(
    ("text", "found"), [("a", "a"), ("a:b/c", "a:b/c"), ("ä", None), ("a b", None), ("x" * 129, None), ("", None)]
)
def test_ids_that_sqs_does_not_take_are_hashed(text: str, found: str | None) -> None:
    assert id_of(text) == found or (found is None and len(id_of(text)) == 64)


def test_a_partition_key_has_parts_of_the_record() -> None:
    record = SinkRecord("t", 3, 7, "v", None, "k", None)
    assert partition_key_of("${topic}/${partition}/${offset}/${key}", record) == "t/3/7/k"
    assert partition_key_of("${key}", record.new_record(key="${topic}")) == "${topic}", "a key is no template"
