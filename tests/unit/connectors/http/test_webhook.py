"""WebhookSource without Kafka: answers, logins, signatures, repeats, and what records have."""

from __future__ import annotations

import base64
import hashlib
import hmac
import ssl
import threading
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

from sluiceway.connectors.http import WebhookSourceConnector
from sluiceway.connectors.http.signatures import Guard
from sluiceway.data import BYTES_SCHEMA, STRING_SCHEMA
from sluiceway.errors import ConfigError
from support.certificates import Authority
from support.eventually import eventually
from support.listening_sources import JSON, Posting, Reply, Running, post, webhook

PATH = "/webhook"


def sending(source: Running, body: bytes = b"{}", **more: Any) -> Posting:
    return Posting(lambda: post(source.port, body, JSON, **{"path": PATH, **more}))


def delivered(source: Running, body: bytes = b"{}", **more: Any) -> Reply:
    """Send a request, whose record Kafka takes, and return the answer."""
    before, sent = len(source.records), sending(source, body, **more)
    eventually(lambda: source.poll() or sent.done, what="a record or an answer")
    source.acknowledge(source.records[before:])
    reply: Reply = sent.reply()
    return reply


def test_a_request_is_answered_when_kafka_has_its_record() -> None:
    with webhook() as source:
        sent = sending(source, b'{"a": [1]}')
        eventually(source.poll, what="a record")
        assert not sent.done
        source.acknowledge(source.records)
        assert sent.reply().status == 200
        [record] = source.records
        assert (record.topic, record.key, record.value, record.value_schema) == ("t", None, {"a": [1]}, None)
        assert record.timestamp is not None
        assert record.source_partition is None


def test_a_request_that_kafka_has_not_in_time_is_sent_again() -> None:
    with webhook(acknowledge_timeout_ms="20") as source:
        reply = sending(source).reply()
        assert (reply.status, reply.headers["Retry-After"]) == (503, "1")
        assert not source.poll()  # it was taken back
    with webhook(acknowledge_timeout_ms="500") as source:
        sent = sending(source)
        eventually(lambda: source.poll() or sent.done, what="a record or an answer")
        assert sent.reply().status == 503


def test_a_task_that_stops_lets_clients_send_again() -> None:
    with webhook() as source:
        sent = [sending(source) for _ in range(3)]
        eventually(lambda: source.metric("requests") == 3, what="the requests")
        source.poll()
    assert [each.reply().status for each in sent] == [503, 503, 503]


def test_a_paused_task_takes_nothing() -> None:
    with webhook() as source:
        waiting = sending(source)
        eventually(lambda: source.metric("requests-waiting") == 1, what="a request")
        source.task.paused()
        assert waiting.reply().status == sending(source).reply().status == 503
        source.task.resumed()
        assert delivered(source).status == 200
        assert len(source.records) == 1


def test_too_many_requests_are_sent_again() -> None:
    with webhook(buffer_requests="1") as source:
        first = sending(source)
        eventually(lambda: source.metric("requests-waiting") == 1, what="a request")
        assert sending(source).reply().status == 503
        source.poll()
        source.acknowledge(source.records)
        assert first.reply().status == 200


@pytest.mark.parametrize(
    ("body", "more", "config", "status"),
    [
        (b"{}", {"path": "/other"}, {}, 404),
        (b"{}", {"method": "GET"}, {}, 405),
        (b"x" * 11, {}, {"max_body_bytes": "10"}, 413),
        (b"{", {}, {}, 400),
        (b"\xff", {}, {"values": "string"}, 400),
        (b'{"a": 1}', {}, {"key_pointer": "/b"}, 400),
        (b"{}", {}, {"key_header": "X-Key"}, 400),
    ],
)
def test_what_cannot_be_taken_is_refused(body: bytes, more: dict[str, Any], config: dict[str, str], status: int) -> None:
    with webhook(**config) as source:
        assert sending(source, body, **more).reply().status == status
        assert not source.poll()


def test_records_have_keys_headers_and_topics() -> None:
    config = {"paths": "/a/b,/c", "headers": "X-Event, X-Other", "key_pointer": "/repo/id", "status": "202"}
    with webhook(topic="hooks-${path}", **config) as source:
        reply = delivered(source, b'{"repo": {"id": 7}}', path="/a/b?token=hush", X_Event="push", X_Else="x")
        delivered(source, b'{"repo": {"id": "x"}}', path="/c")
        first, second = source.records
    assert (reply.status, reply.body) == (202, b"")
    assert (first.topic, first.key, first.key_schema) == ("hooks-a.b", "7", STRING_SCHEMA)
    assert [(each.key, each.value, each.schema) for each in first.headers] == [("X-Event", "push", STRING_SCHEMA)]
    assert (second.topic, second.key, second.headers) == ("hooks-c", "x", ())


def test_bodies_may_be_bytes() -> None:
    with webhook(values="bytes", key_header="X-Key") as source:
        delivered(source, b"\xff\x00", X_Key="k")
        [record] = source.records
    assert (record.value, record.value_schema, record.key) == (b"\xff\x00", BYTES_SCHEMA, "k")


def test_a_delivery_is_taken_once() -> None:
    with webhook(id_header="X-Id", ids_kept="2") as source:
        first = sending(source, X_Id="1")
        eventually(lambda: source.metric("requests") == 1, what="a request")
        again = sending(source, X_Id="1")
        eventually(lambda: source.metric("requests-repeated") == 1, what="its repetition")
        eventually(source.poll, what="a record")
        source.acknowledge(source.records)
        assert first.reply().status == again.reply().status == 200
        assert sending(source, X_Id="1").reply().status == 200
        for number in ("2", "3"):
            assert delivered(source, X_Id=number).status == 200
        assert delivered(source, X_Id="1").status == 200  # forgotten
        assert len(source.records) == 4


def test_a_delivery_that_was_refused_is_not_remembered() -> None:
    with webhook(id_header="X-Id") as source:
        refused = sending(source, X_Id="1")
        eventually(lambda: source.metric("requests-waiting") == 1, what="a request")
        source.task.paused()
        assert refused.reply().status == 503
        source.task.resumed()
        assert delivered(source, X_Id="1").status == 200
        assert len(source.records) == 1


def signature(secret: str, body: bytes, algorithm: str = "sha256") -> hmac.HMAC:
    return hmac.new(secret.encode(), body, algorithm)


def test_secrets_and_logins() -> None:
    with webhook(authorization="secret", secret="hush", secret_previous="old") as source:
        assert delivered(source).status == delivered(source, X_Webhook_Secret="no").status == 401
        assert delivered(source, X_Webhook_Secret="hush").status == 200
        assert delivered(source, X_Webhook_Secret="old").status == 200
        assert source.metric("requests-denied") == 2
    login = base64.b64encode(b"u:p").decode()
    with webhook(authorization="basic", username="u", password="p") as source:
        reply = delivered(source)
        assert (reply.status, reply.headers["WWW-Authenticate"]) == (401, 'Basic realm="webhook"')
        assert delivered(source, Authorization=f"Basic {login}").status == 200


def test_githubs_signatures() -> None:
    body = b'{"zen": 1}'
    with webhook(authorization="github", secret="hush") as source:
        good = f"sha256={signature('hush', body).hexdigest()}"
        for given in ("", good[:-1], good.replace("sha256=", ""), f"sha256={signature('other', body).hexdigest()}"):
            assert delivered(source, body, X_Hub_Signature_256=given).status == 401
        assert delivered(source, body + b" ", X_Hub_Signature_256=good).status == 401
        assert delivered(source, body).status == 401
        assert delivered(source, body, X_Hub_Signature_256=good, Content_Encoding="gzip").status == 415
        assert delivered(source, body, X_Hub_Signature_256=good).status == 200
        assert len(source.records) == 1


def headers(**given: str) -> Message:
    made = Message()
    for name, value in given.items():
        made[name.replace("_", "-")] = value
    return made


def test_stripes_signatures_have_a_time() -> None:
    guard = Guard("stripe", ["hush"], "Stripe-Signature", tolerance=300.0, clock=lambda: 1000.0)

    def signed(at: str, body: bytes = b"{}", extra: str = "") -> bool:
        digest = signature("hush", at.encode() + b"." + b"{}").hexdigest()
        return guard.has_signed(headers(Stripe_Signature=f"t={at},{extra}v1={digest}"), body)

    assert signed("1000")
    assert signed("700", extra="v1=00,v0=11,")
    assert signed("1300")
    for bad in ("699", "1301", "", "x", "-1", "٣"):
        assert not signed(bad)
    assert not signed("1000", b"{ }")
    assert not guard.has_signed(headers(Stripe_Signature="v1=00"), b"{}")


@pytest.mark.parametrize("algorithm", ["sha1", "sha256", "sha512"])
def test_signatures_of_other_forms(algorithm: str) -> None:
    guard = Guard("hmac", ["old", "hush"], "X-Signature", None, algorithm, True, "v=")
    digest = base64.b64encode(signature("hush", b"x", algorithm).digest()).decode()
    assert guard.has_signed(headers(X_Signature=f"v={digest}"), b"x")
    assert not guard.has_signed(headers(X_Signature=digest), b"x")
    assert not guard.has_signed(headers(X_Signature=f"v={signature('hush', b'x', algorithm).hexdigest()}"), b"x")
    assert hashlib.new(algorithm)
    twice = headers(X_Signature=f"v={digest}")
    twice["X-Signature"] = "v=other"
    assert not guard.knows(twice)


def test_tls(tmp_path: Path) -> None:
    authority = Authority("test")
    for name, part in zip(("certificate", "key"), authority.issue("server"), strict=True):
        (tmp_path / name).write_text(part)
    own = {f"ssl_{name}_location": str(tmp_path / name) for name in ("certificate", "key")}
    with webhook(**own) as source:
        assert delivered(source, tls=ssl.create_default_context(cadata=authority.pem)).status == 200


def errors(**config: str) -> list[str]:
    keys = {key.replace("_", "."): value for key, value in config.items()}
    own = {key if key == "topic" else f"webhook.{key}": value for key, value in {"topic": "t", **keys}.items()}
    found = [name for name, each in WebhookSourceConnector.check(own).items() if each.errors]
    if found:
        with pytest.raises(ConfigError):
            WebhookSourceConnector().start(own)
    else:
        WebhookSourceConnector().start(own)
    return [each.removeprefix("webhook.") for each in found]


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"authorization": "basic", "username": "u"}, "password"),
        ({"authorization": "basic", "username": "u:v", "password": "p"}, "username"),
        ({"authorization": "github"}, "secret"),
        ({"authorization": "github", "secret": ""}, "secret"),
        ({"authorization": "github", "secret": "s", "secret_previous": ""}, "secret.previous"),
        ({"secret": "s"}, "secret"),
        ({"username": "u"}, "username"),
        ({"authorization": "digest"}, "authorization"),
        ({"paths": "webhook"}, "paths"),
        ({"paths": "/a/../b"}, "paths"),
        ({"paths": ""}, "paths"),
        ({"topic": "${header}"}, "topic"),
        ({"topic": "${path}", "paths": "/"}, "topic"),
        ({"headers": "Authorization"}, "headers"),
        ({"headers": "a b"}, "headers"),
        ({"authorization": "secret", "secret": "s", "headers": "x-webhook-secret"}, "headers"),
        ({"authorization": "secret", "secret": "s", "key_header": "X-Webhook-Secret"}, "key.header"),
        ({"key_header": "X", "key_pointer": "/x"}, "key.header"),
        ({"key_pointer": "x"}, "key.pointer"),
        ({"key_pointer": "/x", "values": "bytes"}, "key.pointer"),
        ({"ssl_key_location": "/x"}, "ssl.certificate.location"),
        ({"status": "203"}, "status"),
        ({"signature_algorithm": "md5"}, "signature.algorithm"),
    ],
)
def test_keys_are_checked(config: dict[str, str], key: str) -> None:
    assert errors(**config) == [key]


def test_secrets_are_not_shown() -> None:
    assert errors() == []
    assert "hush" not in repr(Guard("github", ["hush"], "X"))
    assert threading.active_count() < 100
