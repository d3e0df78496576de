"""Keys of the NATS connectors, subjects, headers, and answers, without a server."""

from __future__ import annotations

import json
import pickle
import re
import ssl
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.api import DONE, Outcome, SinkRecord
from sluiceway.connectors.errors import LoginError, RefusedError, UnreachableError
from sluiceway.connectors.nats import NatsConsumerSourceConnector, NatsSinkConnector, NatsStreamSourceConnector
from sluiceway.connectors.nats.client import parsed_headers
from sluiceway.connectors.nats.connection import Server
from sluiceway.connectors.nats.jetstream import moment
from sluiceway.connectors.nats.publisher import result_of, size_of
from sluiceway.connectors.nats.pulls import delivery_of
from sluiceway.connectors.nats.session import NoJetStreamError, meaning_of, refusal
from sluiceway.connectors.nats.sink import filled_subject, own_headers, subject_problem
from sluiceway.data import Header
from sluiceway.errors import ConfigError, ConnectError, DataError

STREAM = {"nats.streams": "S"}
SERVER = Server(("nats://n:4222",), "me", "hush", timeout=3.0)


def errors(connector: Any, config: dict[str, str]) -> list[str]:
    """Return the names of keys with errors, and check that ``start`` refuses the same config."""
    found = [name for name, each in connector.check(config).items() if each.errors]
    if found:
        with pytest.raises(ConfigError):
            connector().start(config)
    else:
        connector().start(config)
    return found


@pytest.mark.parametrize(
    "servers",
    [
        *("", "nats", "http://n", "nats://", "nats://n:0", "nats://n:99999", "nats://n/x", "nats://n?a=1", "nats://me:hush@n"),
        *("nats://a,tls://b", "nats://hush@n"),
    ],
)
def test_servers_are_urls_of_one_kind_without_a_login(servers: str) -> None:
    config = {**STREAM, "nats.servers": servers}
    assert errors(NatsStreamSourceConnector, config) == ["nats.servers"]
    assert "hush" not in str(NatsStreamSourceConnector.check(config)["nats.servers"].errors)


@pytest.mark.parametrize("servers", ["nats://n", "tls://n:4222", "nats://a:1,nats://b:2", "nats://[::1]:4222"])
def test_several_servers_may_be_given(servers: str) -> None:
    assert errors(NatsStreamSourceConnector, {**STREAM, "nats.servers": servers}) == []


LOGINS = {
    "nats.user": {"nats.user": "u", "nats.password": "p"},
    "nats.token": {"nats.token": "t"},
    "nats.nkey.seed": {"nats.nkey.seed": "SU"},
    "nats.credentials.file": {"nats.credentials.file": "/f"},
}


@pytest.mark.parametrize("one", LOGINS)
@pytest.mark.parametrize("other", LOGINS)
def test_a_connection_has_one_login(one: str, other: str) -> None:
    found = errors(NatsStreamSourceConnector, {**STREAM, **LOGINS[one], **LOGINS[other]})
    assert found == ([] if one == other else [max(one, other, key=list(LOGINS).index)])


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"nats.user": "u"}, "nats.password"),
        ({"nats.password": "p"}, "nats.user"),
        ({"nats.ssl.truststore.location": "/f"}, "nats.servers"),
        ({"nats.ssl.keystore.password": "p"}, "nats.servers"),
        ({"nats.inbox.prefix": "a.*"}, "nats.inbox.prefix"),
        ({"nats.inbox.prefix": ""}, "nats.inbox.prefix"),
        ({"nats.jetstream.domain": "a.b"}, "nats.jetstream.domain"),
        ({"nats.streams": "a.b"}, "nats.streams"),
        ({"nats.streams": "a b"}, "nats.streams"),
        ({"nats.streams": "a/b"}, "nats.streams"),
        ({"nats.streams": ""}, "nats.streams"),
        ({"nats.streams": "ä"}, "kafka.topic"),
        ({"nats.stream.begin": "last"}, "nats.stream.begin"),
        ({"nats.stream.begin": "-1"}, "nats.stream.begin"),
        ({"nats.stream.begin": "2026-13-01"}, "nats.stream.begin"),
        ({"nats.stream.begin": str(2**63)}, "nats.stream.begin"),
        ({"nats.values": "json"}, "nats.values"),
        ({"kafka.topic": ""}, "kafka.topic"),
        *(({"nats.subject.filter": each}, "nats.subject.filter") for each in ("", "a..b", "a.>.b", "a*", ">a", "a b", ".a")),
    ],
)
def test_keys_of_the_stream_source_are_checked(config: dict[str, str], key: str) -> None:
    assert errors(NatsStreamSourceConnector, {**STREAM, **config}) == [key]


@pytest.mark.parametrize("subject", [">", "*", "a", "a.>", "*.b.*", "$KV.a.>"])
def test_filters_may_have_wildcards(subject: str) -> None:
    assert errors(NatsStreamSourceConnector, {**STREAM, "nats.subject.filter": subject}) == []


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"nats.stream": "a.b"}, "nats.stream"),
        ({"nats.consumer": ""}, "nats.consumer"),
        ({"nats.consumer": "a>"}, "nats.consumer"),
        ({"nats.consumer.begin": "last"}, "nats.consumer.begin"),
        ({"nats.consumer.ack.wait.ms": "999"}, "nats.consumer.ack.wait.ms"),
        ({"nats.held": "0"}, "nats.held"),
    ],
)
def test_keys_of_the_consumer_source_are_checked(config: dict[str, str], key: str) -> None:
    assert errors(NatsConsumerSourceConnector, {"nats.stream": "S", "nats.consumer": "c", **config}) == [key]


@pytest.mark.parametrize(
    ("config", "key"),
    [
        *(
            ({"nats.subject": each}, "nats.subject")
            for each in ("", "a..b", "a.*", "a b", "${offset}", "$JS.API.x", "$SYS.a", "a.>")
        ),
        *(
            ({"nats.message.id": each}, "nats.message.id")
            for each in ("x", "${topic}-${offset}", "${topic}-${partition}", "${key}-${topic}-${partition}-${offset}", "")
        ),
        ({"nats.message.id": "a\nb ${topic}-${partition}-${offset}"}, "nats.message.id"),
        ({"nats.publish.window": "0"}, "nats.publish.window"),
    ],
)
def test_keys_of_the_sink_are_checked(config: dict[str, str], key: str) -> None:
    assert errors(NatsSinkConnector, {"topics": "t", **config}) == [key]


def record(key: Any = "k", value: Any = "v", **more: Any) -> SinkRecord:
    return SinkRecord("t", 3, 7, value, None, key, None, **more)


@given(st.text(max_size=12), st.sampled_from(["${key}", "a.${key}", "a.${key}.b", "$KV.b.${key}", "x${key}"]))
def test_a_subject_that_is_made_of_a_key_can_be_published_to_or_is_refused(key: str, template: str) -> None:
    try:
        subject = filled_subject(template, record(key))
    except (DataError, UnicodeError):
        return
    assert subject == template.replace("${key}", key)
    assert not re.search(r"[\s\0]", subject)
    assert all(token and token not in ("*", ">") for token in subject.split("."))
    assert not subject.startswith("$") or subject.startswith(("$KV.", "$O."))


def test_a_key_cannot_have_placeholders() -> None:
    assert filled_subject("${topic}.${key}", record("${partition}")) == "t.${partition}"
    assert subject_problem("a" * 2001) == "it has more than 2000 bytes"
    assert subject_problem("ä" * 1000) == ""


NAMES = st.text("abcXYZ019-_.!", min_size=1, max_size=8)
VALUES = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@given(st.lists(st.tuples(NAMES, VALUES), max_size=5))
def test_headers_that_are_written_are_read_the_same_or_refused(pairs: list[tuple[str, str]]) -> None:
    pairs = [(name, value) for name, value in pairs if not name.lower().startswith("nats-")]
    try:
        written = own_headers(record(headers=tuple(Header(name, value) for name, value in pairs)))
    except DataError:
        assert any(value != value.strip() or set("\r\n") & set(value) for _name, value in pairs)
        return
    raw = b"NATS/1.0\r\n" + b"".join(f"{name}: {value}\r\n".encode() for name, value in written) + b"\r\n"
    assert parsed_headers(raw).pairs == written == pairs
    assert len(raw) == size_of(written)


def test_a_status_and_odd_headers_are_read() -> None:
    found = parsed_headers(b"NATS/1.0 408 Request Timeout\r\nNats-Pending-Messages: 47\r\nA:1\r\nno header\r\nB: \xff\r\n\r\n")
    assert (found.status, found.description) == ("408", "Request Timeout")
    assert found.pairs == [("Nats-Pending-Messages", "47"), ("A", "1"), ("B", b"\xff")]
    assert parsed_headers(b"NATS/1.0\r\nStatus: 404\r\n\r\n").status == ""


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("2026-12-01T05:45:14.910033564Z", "2026-12-01T05:45:14.910033Z"),
        ("2026-12-01T05:45:14.91Z", "2026-12-01T05:45:14.910000Z"),
        ("2026-12-01T05:45:14Z", "2026-12-01T05:45:14.000000Z"),
        ("2026-12-01T06:45:14.1+01:00", "2026-12-01T05:45:14.100000Z"),
    ],
)
def test_times_have_one_form(text: str, same: str) -> None:
    assert moment(text) == same == moment(same)


class _Message:
    def __init__(self, reply: str) -> None:
        self.subject, self.reply = "s", reply


def test_deliveries_are_read_in_both_forms() -> None:
    message: Any = _Message("$JS.ACK.S.c.2.7.9.1700000000000000001.4")
    assert delivery_of(message) == (7, 9, 2, 1700000000000000001, message.reply)
    message = _Message("$JS.ACK.hub.hash.S.c.2.7.9.1700000000000000001.4.random")
    assert delivery_of(message)[:4] == (7, 9, 2, 1700000000000000001)
    for bad in ("", "$JS.ACK.S.c.x.7.9.1.4", "a.b"):
        odd: Any = _Message(bad)
        with pytest.raises(ConnectError, match="of no stream"):
            delivery_of(odd)


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ({"stream": "S", "seq": 1}, Outcome.DONE),
        ({"stream": "S", "seq": 1, "duplicate": True}, Outcome.DONE),
        ({"error": {"code": 503, "err_code": 10077, "description": "maximum messages exceeded"}}, Outcome.RETRY),
        ({"error": {"code": 400, "err_code": 10077, "description": "maximum bytes exceeded"}}, Outcome.RETRY),
        ({"error": {"code": 503, "err_code": 10008, "description": "temporarily unavailable"}}, Outcome.RETRY),
        ({"error": {"code": 400, "err_code": 10054, "description": "message size exceeds"}}, Outcome.REFUSED),
        ({}, Outcome.REFUSED),
        ([], Outcome.REFUSED),
        ("pong", Outcome.REFUSED),
    ],
)
def test_answers_to_publications_have_outcomes(answer: Any, outcome: Outcome) -> None:
    assert result_of(json.dumps(answer).encode()).outcome is outcome
    assert (result_of(json.dumps(answer).encode()) == DONE) is (outcome is Outcome.DONE)
    assert result_of(b"\xff").outcome is Outcome.REFUSED


@pytest.mark.parametrize(
    ("error", "kind", "key"),
    [
        ("nats: 'Authorization Violation'", LoginError, "nats.password"),
        ("nats: 'User Authentication Expired'", LoginError, "nats.password"),
        ("nats: 'Account Authentication Expired'", LoginError, "nats.password"),
        ("nats: 'maximum connections exceeded'", UnreachableError, None),
        ("nats: 'Authentication Timeout'", UnreachableError, None),
    ],
)
def test_errors_of_the_client_have_a_meaning(error: str, kind: type[Exception], key: str | None) -> None:
    from nats import errors as of_client

    found = meaning_of(of_client.Error(error), SERVER, "NATS at n:4222")
    assert type(found) is kind
    assert getattr(found, "key", None) == key
    assert "hush" not in str(found)


def test_errors_of_tls_and_of_the_network_have_a_meaning() -> None:
    from nats import errors as of_client

    def meaning(error: BaseException) -> Exception:
        return meaning_of(error, SERVER, "NATS at n:4222")

    untrusted = ssl.SSLCertVerificationError(1, "certificate verify failed")
    refused = ssl.SSLError(1, "[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] tlsv13 alert certificate required")
    refused.reason = "TLSV13_ALERT_CERTIFICATE_REQUIRED"
    for error, key in ((untrusted, "nats.ssl.truststore.location"), (refused, "nats.ssl.keystore.location")):
        found = meaning(error)
        assert isinstance(found, LoginError)
        assert found.key == key
    for passing in (TimeoutError(), of_client.TimeoutError(), ConnectionResetError(104, "reset"), of_client.UnexpectedEOF()):
        assert isinstance(meaning(passing), UnreachableError)
    assert type(meaning(ValueError("odd"))) is ConnectError


def test_refusals_of_jetstream_pass_or_do_not() -> None:
    assert type(refusal({"code": 503, "err_code": 10008, "description": "later"}, "n")) is UnreachableError
    assert type(refusal({"code": 503, "err_code": 10039, "description": "not enabled"}, "n")) is NoJetStreamError
    found = refusal({"code": 404, "err_code": 10059, "description": "stream not found"}, "n")
    assert isinstance(found, RefusedError)
    assert found.code == 10059


def test_errors_can_be_pickled() -> None:
    for error in (LoginError("a", "b"), RefusedError("a", 7), UnreachableError("a"), NoJetStreamError("a")):
        again = pickle.loads(pickle.dumps(error))  # noqa: S301 (of this test)
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_nothing_shows_a_secret() -> None:
    assert "hush" not in repr(SERVER)
    assert "hush" not in repr(Server(("nats://n",), token="hush", nkey="hush"))
