"""The examples of the guide on Airflow's idioms, each a DAG that a real Airflow runs. Their connectors share an application."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from support.docs_pages import DOCS
from support.eventually import eventually
from support.kafka import Kafka
from support.stack import START, RunningStack

pytestmark = [pytest.mark.airflow, pytest.mark.long, pytest.mark.timeout(1500)]

PAGE = DOCS / "how-to" / "use-airflow-idioms.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@dataclass
class Expected:
    """The states of a run's task instances by task, and the number of records in a topic afterwards."""

    tasks: Mapping[str, list[str]]
    records: Mapping[str, int] = field(default_factory=dict)
    conf: Mapping[str, str] = field(default_factory=dict)
    state: str = "success"


OK = ["success"]
RUNS = {
    "idiom_mapping": Expected({"load": OK * 2}, {"mapped": 3}),
    "idiom_taskflow": Expected({"configs": OK, "load": OK * 2, "total": OK}, {"flow": 3}),
    "idiom_functions": Expected({"load_eu": OK, "load_us": OK}, {"made": 3}),
    "idiom_params": Expected({"load": OK}, {"given": 1}, {"region": "us", "topic": "given"}),
    "idiom_setup": Expected({"create": OK, "load": OK, "delete": OK}, {"one-run": 2}),
    "idiom_rules": Expected({"load": ["failed"], "alert": OK, "report": OK, "celebrate": ["upstream_failed"]}, state="failed"),
    "idiom_groups": Expected(
        {f"{region}.{task}": OK for region in ("eu", "us") for task in ("read", "write")}, {"grouped-eu": 2, "grouped-us": 1}
    ),
    "idiom_factory_eu": Expected({"load": OK}),
    "idiom_factory_us": Expected({"load": OK}),
    "idiom_pools": Expected({"load_eu": OK, "load_us": OK}, {"pooled": 3}),
    "idiom_defaults": Expected({"eu": OK, "us": OK}, {"defaults": 3}),
    "idiom_callbacks": Expected({"load": OK}, {"called": 2}),
    "idiom_deadline": Expected({"load": OK}, {"in-time": 2}),
}


@dataclass
class Idioms:
    """The examples in a stack's DAGs folder, and their runs by DAG."""

    stack: RunningStack
    folder: Path
    runs: dict[str, str] = field(default_factory=dict)

    def trigger(self, dag: str, conf: Mapping[str, str]) -> None:
        eventually(lambda: self.stack.dag(dag), within=START, what=f"DAG {dag}")
        self.stack.set_paused(dag, False)
        answer = self.stack.airflow.post(f"/dags/{dag}/dagRuns", json={"logical_date": None, "conf": dict(conf)})
        self.runs[dag] = str(answer.raise_for_status().json()["dag_run_id"])

    def ended(self, dag: str) -> str:
        """Wait for the end of a DAG's run, and return its state."""
        url = f"/dags/{dag}/dagRuns/{self.runs[dag]}"
        final = ("success", "failed")
        state = eventually(
            lambda: (state := self.stack.airflow.get(url).json()["state"]) in final and state,
            within=5 * START,
            what=f"the end of {dag}, whose tasks are {self.instances(dag)}",
        )
        return str(state)

    def instances(self, dag: str) -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = self.stack.airflow.get(f"/dags/{dag}/dagRuns/{self.runs[dag]}/taskInstances").json()[
            "task_instances"
        ]
        return found

    def returned(self, dag: str, task: str) -> Any:
        url = f"/dags/{dag}/dagRuns/{self.runs[dag]}/taskInstances/{task}/xcomEntries/return_value"
        return self.stack.airflow.get(url, params={"deserialize": True}).json()["value"]


@pytest.fixture(scope="module")
def idioms(stack: RunningStack, folder: Path) -> Iterator[Idioms]:
    """Write the examples, trigger all, and remove them in the end."""
    data = folder / "idioms"
    data.mkdir()
    (data / "eu.txt").write_text("a\nb\n")
    (data / "us.txt").write_text("c\n")
    stack.airflow.post("/pools", json={"name": "databases", "slots": 1}).raise_for_status()
    written = []
    for number, example in enumerate(EXAMPLES):
        text = example.replace('"/data/', f'"{data}/').replace(
            '"connector.class"', '"sluiceway.application": "idioms", "airflow.mode": "micro-batch", "connector.class"'
        )
        written.append(stack.home / "airflow" / "dags" / f"idiom_{number}.py")
        written[-1].write_text(text)
    found = Idioms(stack, data)
    for dag, expected in RUNS.items():
        found.trigger(dag, expected.conf)
    yield found
    for path in written:
        path.unlink()
    for name in stack.connect.connectors():
        if stack.connect.config(name).get("airflow.dag", "").startswith("idiom_"):
            stack.connect.delete(name)


def test_each_example_of_the_guide_is_run() -> None:
    ids = set(re.findall(r'DAG\(\s*f?"(idiom_\w+)', "\n".join(EXAMPLES)))
    assert {re.sub("_(eu|us)$", "", dag) for dag in RUNS} == {each.rstrip("_") for each in ids}


@pytest.mark.parametrize("dag", RUNS)
def test_an_example_does_what_the_guide_says(idioms: Idioms, dag: str) -> None:
    expected = RUNS[dag]
    state = idioms.ended(dag)
    instances = idioms.instances(dag)
    found = {task: [each["state"] for each in instances if each["task_id"] == task] for task in expected.tasks}
    assert (state, found) == (expected.state, expected.tasks)
    assert Counter(each["task_id"] for each in instances) == Counter({task: len(of) for task, of in expected.tasks.items()})
    kafka = Kafka(idioms.stack.addresses.bootstrap)
    assert {topic: kafka.end(topic) for topic in expected.records} == expected.records


def test_results_names_and_callbacks_are_those_of_the_connectors(idioms: Idioms) -> None:
    for dag in ("idiom_taskflow", "idiom_mapping", "idiom_setup", "idiom_callbacks", "idiom_pools", "idiom_groups"):
        idioms.ended(dag)
    assert idioms.returned("idiom_taskflow", "total") == 3
    assert {each["rendered_map_index"] for each in idioms.instances("idiom_mapping")} == {"mapped-eu", "mapped-us"}
    assert idioms.stack.states("for-one-run") == ()
    assert (idioms.folder / "noted.txt").read_text() == "2 records"
    used = {(each["pool"], each["queue"], each["priority_weight"]) for each in idioms.instances("idiom_pools")}
    assert used == {("databases", "spark", 1), ("databases", "spark", 2)}
    assert [(idioms.folder / f"copy-{region}.txt").read_text() for region in ("eu", "us")] == ["a\nb\n", "c\n"]
