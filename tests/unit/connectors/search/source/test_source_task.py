"""The sources' connector and task on a scripted server: what differs in Elasticsearch, and what a real node does rarely."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from sluiceway.api import ExactlyOnceSupport
from sluiceway.connectors.search.source import ElasticsearchSourceConnector, OpenSearchSourceConnector
from sluiceway.connectors.search.source.connector import SearchSourceConnector, seconds_of
from sluiceway.errors import ConnectError, RetriableError
from sluiceway.runtime.memory import MemoryConnectorContext, MemoryOffsets, MemorySourceContext
from support.eventually import eventually
from support.search.scripted import Request, answering

LOGIN = {"connection.username": "me", "connection.password": "hush"}
FAST = {"index.poll.interval.ms": "20", "poll.interval.ms": "0", **LOGIN}
Answer = tuple[int, Any]


def failed(kind: str, reason: str = "no", status: int = 404) -> Answer:
    cause = {"type": kind, "reason": reason}
    return status, {"error": {"root_cause": [cause], "type": "search_phase_execution_exception", "reason": "all shards failed"}}


class Cluster:
    """A scripted cluster of one index with documents 0, 1, ... in one shard; ``answers`` replaces those of paths."""

    def __init__(self, *, opensearch: bool = True, documents: int = 3) -> None:
        self.opensearch, self.documents = opensearch, documents
        self.requests: list[Request] = []
        self.answers: dict[str, Callable[[Request], Answer | None]] = {}
        self.shards, self.uuid, self.refresh_interval = 1, "u", "1s"
        self.replica = 0

    def answer(self, request: Request) -> tuple[int, bytes]:
        self.requests.append(request)
        for path, scripted in self.answers.items():
            if path in request.path and (found := scripted(request)) is not None:
                return found[0], json.dumps(found[1]).encode()
        status, content = self._usual(request)
        return status, json.dumps(content).encode()

    def _usual(self, request: Request) -> Answer:
        path, body = request.path, json.loads(request.body or b"{}")
        if path == "/":
            return 200, {"version": {"number": "9", **({"distribution": "opensearch"} if self.opensearch else {})}}
        if "_stats" in path:
            copies = ((True, self.documents - 1), (False, self.replica))
            shard = [{"routing": {"primary": first}, "seq_no": {"global_checkpoint": number}} for first, number in copies]
            return 200, {"indices": {"orders": {"uuid": self.uuid, "shards": {"0": shard}}}}
        if "_refresh" in path:
            return 200, {"_shards": {"failed": 0}}
        if "_pit" in path or "point_in_time" in path:
            return 200, {"pit_id": "view"} if self.opensearch else {"id": "view"}
        if "_search" in path:
            first = body.get("search_after", [-1])[-1] + 1
            numbers = range(first, min(self.documents, first + body["size"]))
            hits = [{"_id": f"k{n}", "_source": {"n": n}, "sort": [n]} for n in numbers]
            return 200, {"pit_id": f"view-{first}", "_shards": {"total": 1}, "hits": {"hits": hits}}
        settings = {"index": {"uuid": self.uuid, "number_of_shards": self.shards, "refresh_interval": self.refresh_interval}}
        return 200, {"orders": {"aliases": {}, "settings": settings}}

    def asked(self, part: str) -> list[Request]:
        return [each for each in self.requests if part in each.path]


class Running:
    def __init__(self, kind: type[SearchSourceConnector], config: dict[str, str]) -> None:
        self.kind, self.config = kind, config
        self.context = MemoryConnectorContext()
        self.connector = kind()
        self.connector.initialize(self.context)
        self.connector.start(config)
        self.offsets = MemoryOffsets()
        self.task = kind.task_class()

    def start_task(self) -> None:
        [config] = self.connector.task_configs(1)
        self.task.initialize(MemorySourceContext(config, self.offsets))
        self.task.start(config)

    def stop(self) -> None:
        self.task.stop()
        self.connector.stop()


@contextmanager
def running(
    cluster: Cluster, kind: type[SearchSourceConnector] = OpenSearchSourceConnector, /, *, task: bool = True, **config: str
) -> Iterator[Running]:
    with answering(cluster.answer) as url:
        given = {key.replace("_", "."): value for key, value in config.items()}
        made = Running(kind, {"name": "n", "connection.url": url, "index": "orders", **FAST, **given})
        try:
            if task:
                made.start_task()
            yield made
        finally:
            made.stop()


def keys(running: Running) -> list[str]:
    return [str(each.key) for each in running.task.poll() or ()]


@pytest.mark.parametrize("kind", [ElasticsearchSourceConnector, OpenSearchSourceConnector])
def test_elasticsearch_has_paths_of_its_own_for_points_in_time(kind: Any) -> None:
    cluster = Cluster(opensearch=False)
    with running(cluster, kind, batch_max_rows="2", index_poll_interval_ms="60000") as source:
        assert keys(source) == ["k0", "k1"]
        assert keys(source) == ["k2"]
        assert keys(source) == []
    [opened] = cluster.asked("/orders/_pit")
    assert (opened.method, opened.path) == ("POST", "/orders/_pit?keep_alive=300000ms&preference=_shards%3A0")
    pages = [json.loads(each.body) for each in cluster.asked("/_search")]
    assert [each["pit"] for each in pages] == [
        {"id": "view", "keep_alive": "300000ms"},
        {"id": "view-0", "keep_alive": "300000ms"},
    ]
    [closed] = [each for each in cluster.asked("/_pit") if each.method == "DELETE"]
    assert json.loads(closed.body) == {"id": "view-2"}


@pytest.mark.parametrize("kind", [ElasticsearchSourceConnector, OpenSearchSourceConnector])
def test_opensearch_has_paths_of_its_own_for_points_in_time(kind: Any) -> None:
    cluster = Cluster()
    with running(cluster, kind) as source:
        assert keys(source) == ["k0", "k1", "k2"]
    [opened, closed] = cluster.asked("point_in_time")
    assert opened.method == "POST"
    assert opened.path.startswith("/orders/_search/point_in_time?allow_partial_pit_creation=false&")
    assert opened.path.endswith("preference=_shards%3A0%7C_primary")
    assert (closed.method, json.loads(closed.body)) == ("DELETE", {"pit_id": ["view-0"]})


@pytest.mark.parametrize(
    ("kind", "path"),
    [(ElasticsearchSourceConnector, "/orders/_pit"), (OpenSearchSourceConnector, "/orders/_search/point_in_time")],
)
def test_a_user_who_may_not_ask_for_the_version_gets_the_interface_of_the_connector(kind: Any, path: str) -> None:
    cluster = Cluster(opensearch=kind is OpenSearchSourceConnector)
    cluster.answers["/"] = lambda request: (403, {"error": "no"}) if request.path == "/" else None
    with running(cluster, kind) as source:
        assert len(keys(source)) == 3
    assert cluster.asked(path)


@pytest.mark.parametrize(
    ("path", "answer", "retried", "message"),
    [
        ("/_search?", failed("x", status=500), True, "x: no"),
        ("/_search?", failed("circuit_breaking_exception", status=429), True, "circuit_breaking"),
        ("/_search?", (503, {}), True, "not ready"),
        ("/_search?", failed("query_shard_exception", "No mapping", 400), False, "No mapping"),
        ("/_search?", (200, {"_shards": {"total": 2}, "hits": {"hits": []}}), False, "instead of one shard"),
        ("/_search?", (401, {"error": "who"}), False, "connection.password"),
        ("/_stats", (403, {"error": "no"}), False, "monitor"),
        ("/_refresh", (200, {"_shards": {"failed": 1}}), True, "could not refresh"),
        (
            "point_in_time",
            failed("rejected", "Trying to create too many Point In Time contexts", 429),
            True,
            "max_open_pit_context",
        ),
    ],
)
def test_what_ends_by_itself_is_retried_and_nothing_else(path: str, answer: Answer, retried: bool, message: str) -> None:
    cluster = Cluster()
    cluster.answers[path] = lambda _: answer
    with running(cluster) as source:
        with pytest.raises(ConnectError, match=message) as caught:
            source.task.poll()
        assert isinstance(caught.value, RetriableError) == retried
        assert "hush" not in str(caught.value)
        if retried:
            cluster.answers.clear()
            assert len(keys(source)) == 3


def test_the_checkpoint_is_that_of_the_primary() -> None:
    cluster = Cluster()
    cluster.replica = 99
    with running(cluster) as source:
        assert len(keys(source)) == 3
    [page] = cluster.asked("/_search?")
    assert {"range": {"_seq_no": {"lte": 2}}} in json.loads(page.body)["query"]["bool"]["filter"]
    assert page.headers["Accept-Encoding"] == "identity"


def test_a_server_that_stays_away_fails_the_task_after_the_limit() -> None:
    cluster = Cluster()
    cluster.answers["/_search?"] = lambda _: (503, {})
    with running(cluster, sluiceway_unreachable_timeout_ms="0") as source, pytest.raises(ConnectError) as caught:
        source.task.poll()
    assert not isinstance(caught.value, RetriableError)


def test_an_index_that_is_deleted_waits_for_the_connector() -> None:
    cluster = Cluster()
    with running(cluster, index_poll_interval_ms="60000") as source:
        cluster.answers["/orders/_stats"] = lambda _: (404, {"error": {"type": "index_not_found_exception", "reason": "no"}})
        assert source.task.poll() is None
        asked = len(cluster.requests)
        assert source.task.poll() is None
        assert len(cluster.requests) == asked


def test_the_lag_is_known_after_a_pass() -> None:
    with running(Cluster()) as source:
        assert source.task.source_lag().seconds is None
        source.task.poll()
        source.task.poll()
        lag = source.task.source_lag().seconds
        assert lag is not None
        assert 0 <= lag < 60


def test_an_index_made_again_and_one_with_more_shards_change_the_tasks() -> None:
    cluster = Cluster()
    with running(cluster) as source:
        before = source.connector.task_configs(2)
        cluster.uuid, cluster.shards = "v", 2
        eventually(lambda: source.context.reconfigurations > 0, what="the other index")
        after = source.connector.task_configs(2)
        assert (len(before), len(after)) == (1, 2)


def test_a_server_that_is_away_at_the_start_is_waited_for() -> None:
    cluster = Cluster()
    cluster.answers["/orders"] = lambda _: (503, {})
    with running(cluster, task=False) as source:
        assert source.connector.task_configs(1) == []
        assert "not ready" in str(source.context.waits_for[-1])
        cluster.answers.clear()
        eventually(lambda: source.context.reconfigurations > 0, what="the index")
        assert source.context.waits_for[-1] is None


def test_a_server_that_refuses_the_login_fails_the_connector() -> None:
    cluster = Cluster()
    cluster.answers["/"] = lambda _: (401, {"error": "who"})
    with pytest.raises(ConnectError, match=r"connection\.password") as caught, running(cluster):
        pass
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(("interval", "warned"), [("30s", True), ("-1", True), ("1s", False), ("900ms", False)])
def test_a_refresh_interval_longer_than_the_delay_is_warned_of(
    interval: str, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = Cluster()
    cluster.refresh_interval = interval
    with running(cluster, task=False, mode="timestamp"):
        assert ("Raise timestamp.delay.ms" in caplog.text) == warned


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1s", 1), ("500ms", 0.5), ("2m", 120), ("1h", 3600), ("1d", 86_400), ("-1", -1), (None, None), ("x", None)],
)
def test_a_time_of_a_setting(text: str | None, seconds: float | None) -> None:
    assert seconds_of(text) == seconds


def test_each_mode_is_exactly_once_and_offsets_are_checked() -> None:
    connector = OpenSearchSourceConnector()
    assert connector.exactly_once_support({}) is ExactlyOnceSupport.SUPPORTED
    assert connector.alter_offsets({}, [({"index": "a", "shard": 0}, None)])
    with pytest.raises(ConnectError):
        connector.alter_offsets({}, [({"index": "a"}, None)])
