"""The graph of connectors and topics that the page draws."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.api import TopicPartition
from sluiceway.kafka.lag import PartitionLag
from sluiceway.provider.progress.connector_progress import ConnectorProgress
from sluiceway.provider.ui.flow import Edge, Member, edges, graph
from sluiceway.storage.model import State
from support.dashboard import SINK, SOURCE, MemoryConnectors

MIRROR = {"connector.class": "MirrorSource", "source.cluster.bootstrap.servers": "there:9092", "source.cluster.alias": "a"}
JDBC = {"connector.class": "JdbcSource", "connection.url": "jdbc:postgresql://db/shop", "table.whitelist": "a,b"}
RENAMED = {"transforms": "r", "transforms.r.type": "org.apache.kafka.connect.transforms.RegexRouter"}

# The config, the active topics, and the connections: writes >, reads <, dead letter queue !, planned ?, @ another cluster.
CASES: dict[str, tuple[dict[str, str], list[str], list[str]]] = {
    "a source that has run": ({"connector.class": SOURCE, "topic": "configured"}, ["b", "a"], [">a", ">b"]),
    "a source before its first record": ({"connector.class": SOURCE, "topic": "a"}, [], [">a?"]),
    "tables before the first record": ({**JDBC, "topic.prefix": "p-"}, [], [">p-a?", ">p-b?"]),
    "a query's topic": ({"connector.class": "JdbcSource", "connection.url": "jdbc:sqlite:x", "topic.prefix": "q"}, [], []),
    "a mirror, whose topics are elsewhere": ({**MIRROR, "topics": "x,y.*"}, [], [">a.x?"]),
    "a router before its first record": ({"connector.class": SOURCE, "topic": "a", **RENAMED}, [], []),
    "a router that has run": ({"connector.class": SOURCE, "topic": "a", **RENAMED}, ["renamed"], [">renamed"]),
    "a source's topic that is a reference": ({"connector.class": SOURCE, "topic": "${env:T}"}, [], []),
    "a sink before its first record": ({"connector.class": SINK, "topics": "b, a"}, [], ["<a", "<b"]),
    "a sink whose topics have changed": ({"connector.class": SINK, "topics": "a"}, ["old", "a"], ["<a"]),
    "a sink that renames topics reads them": ({"connector.class": SINK, "topics": "a", **RENAMED}, ["a"], ["<a"]),
    "a pattern": ({"connector.class": SINK, "topics.regex": "a.*"}, ["a1", "a2"], ["<a1", "<a2"]),
    "a pattern before its first record": ({"connector.class": SINK, "topics.regex": "a.*"}, [], []),
    "topics that are references": ({"connector.class": SINK, "topics": "a,${env:T}"}, [], ["<a"]),
    "a dead letter queue": (
        {"connector.class": SINK, "topics": "a", "errors.deadletterqueue.topic.name": " dead "},
        ["a", "dead"],
        ["!dead", "<a"],
    ),
    "a source's dead letter queue": (
        {"connector.class": SOURCE, "topic": "a", "errors.deadletterqueue.topic.name": "dead"},
        ["a", "dead"],
        ["!dead", ">a"],
    ),
    "a dead letter queue that is a reference": (
        {"connector.class": SINK, "topics": "a", "errors.deadletterqueue.topic.name": "${env:D}"},
        [],
        ["<a"],
    ),
    "a sink of another cluster": (
        {"connector.class": SINK, "topics": "a", "consumer.override.bootstrap.servers": "SSL://far:9093,b:1"},
        [],
        ["<a@far:9093"],
    ),
    "a source of another cluster": (
        {"connector.class": SOURCE, "topic": "a", "producer.override.bootstrap.servers": "far:9093"},
        ["a"],
        [">a@far:9093"],
    ),
    "a class that is not installed": ({"connector.class": "com.example.Gone", "topics": "a"}, [], ["<a"]),
    "a class that is not installed and names no topics": ({"connector.class": "com.example.Gone"}, ["a"], [">a"]),
}


def _shown(edge: Edge) -> str:
    signs = {"writes": ">", "reads": "<", "dead_letters": "!"}
    place = f"@{edge.topic.cluster}" if edge.topic.cluster else ""
    return f"{signs[edge.kind]}{edge.topic.name}{place}{'?' if edge.planned else ''}"


@pytest.mark.parametrize(("config", "used", "found"), CASES.values(), ids=CASES)
def test_a_connector_is_connected_to_the_topics_that_it_moves(config: dict[str, str], used: list[str], found: list[str]) -> None:
    assert sorted(_shown(edge) for edge in edges(Member("c", config, used))) == sorted(found)


def _source(name: str, *topics: str, **known: Any) -> Member:
    return Member(name, {"connector.class": SOURCE}, topics, **known)


def _sink(name: str, *topics: str, **config: str) -> Member:
    return Member(name, {"connector.class": SINK, "topics": ",".join(topics), **config})


def test_many_topics_of_the_same_connectors_are_one_node() -> None:
    many = [f"t{number:02}" for number in range(30)]
    found = graph([_source("in", *many, "read"), _sink("out", "read")])
    assert [(each["id"], each["count"], len(each["names"])) for each in found["topics"]] == [
        ("/read", 1, 1),
        ("/t00", 30, 20),
    ]
    assert [(each["connector"], each["topic"], each["kind"]) for each in found["edges"]] == [
        ("in", "/read", "writes"),
        ("out", "/read", "reads"),
        ("in", "/t00", "writes"),
    ]


def test_topics_of_two_clusters_with_one_name_are_two() -> None:
    far = {"consumer.override.bootstrap.servers": "far:9092"}
    found = graph([_source("in", "a"), _sink("here", "a"), _sink("there", "a", **far)])
    assert [each["id"] for each in found["topics"]] == ["/a", "far:9092/a"]
    assert {(each["connector"], each["topic"]) for each in found["edges"]} == {
        ("in", "/a"),
        ("here", "/a"),
        ("there", "far:9092/a"),
    }


def test_edges_have_the_rates_and_lags_of_their_topics() -> None:
    lags = tuple(PartitionLag(TopicPartition(topic, n), 0, lag, lag) for topic, n, lag in (("a", 0, 3), ("a", 1, 4), ("b", 0, 5)))
    config = {"connector.class": SINK, "topics": "a,b,c", "errors.deadletterqueue.topic.name": "dead"}
    progress = ConnectorProgress(lag=12, dead_letters=9, partitions=lags)
    sink = Member("out", config, (), progress, 30.0, {"a": 10.004, "b": 20.0, "c": None})
    numbers = {each["topic"]: (each["rate"], each["lag"], each["records"]) for each in graph([sink])["edges"]}
    assert numbers == {"/a": (10.0, 7, None), "/b": (20.0, 5, None), "/c": (None, None, None), "/dead": (None, None, 9)}


def test_an_edge_to_all_topics_has_the_connectors_rate() -> None:
    many = [f"t{number}" for number in range(60)]  # more than have a rate of their own
    assert [each["rate"] for each in graph([_source("in", *many, rate=60.0)])["edges"]] == [60.0]
    parts = graph([_source("in", *many, rate=60.0), _sink("out", "t0")])["edges"]
    assert [each["rate"] for each in parts if each["connector"] == "in"] == [None, None]


TOPICS = st.lists(st.sampled_from([f"t{number}" for number in range(12)]), max_size=12, unique=True)
MEMBERS = st.dictionaries(st.sampled_from("abcdef"), st.tuples(st.booleans(), TOPICS), max_size=6)


@given(MEMBERS)
def test_a_graph_holds_each_connection_once(drawn: dict[str, tuple[bool, list[str]]]) -> None:
    members = [(_sink if sink else _source)(name, *topics) for name, (sink, topics) in drawn.items() if topics]
    found = graph(members)
    named = {each["id"]: each["names"] for each in found["topics"]}
    connections = sorted((each["connector"], each["kind"], topic) for each in found["edges"] for topic in named[each["topic"]])
    expected = sorted((edge.connector, edge.kind, edge.topic.name) for member in members for edge in edges(member))
    assert connections == expected
    assert sorted(topic for names in named.values() for topic in names) == sorted({topic for _, _, topic in expected})
    assert graph(reversed(members)) == found


def test_the_page_gets_only_connectors_that_the_user_may_see_and_no_values() -> None:
    connectors = MemoryConnectors()
    connectors.add("seen", tasks=[State.RUNNING, State.FAILED], trace="hunter2: no")
    connectors.add("hidden", SINK, topics="seen,private")
    connectors.add("out", SINK, topics="seen", connection_password="hunter2", airflow_dag="etl")
    connectors.probe.ends = {TopicPartition("seen", 0): 10}
    connectors.probe.committed = {"connect-out": {TopicPartition("seen", 0): 4}}
    connectors.dashboard.sampler.sample()
    found = connectors.dashboard.flow(["seen", "out"])
    assert [(each["name"], each["shown"]) for each in found["connectors"]] == [("seen", "FAILED"), ("out", "RUNNING")]
    assert [each["id"] for each in found["topics"]] == ["/seen"]
    assert [(each["connector"], each["kind"], each["lag"]) for each in found["edges"]] == [
        ("out", "reads", 6),
        ("seen", "writes", None),
    ]
    text = orjson.dumps(found).decode()
    assert "hidden" not in text
    assert "private" not in text
    assert "hunter2" not in text
    assert [each["name"] for each in connectors.dashboard.flow(["seen", "out"], "etl")["connectors"]] == ["out"]
