"""The twelve checks of Java plugins beside Kafka Connect: figures that the benchmarks measure, and tests that show the others."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from support.toggles import table

_ROOT = Path(__file__).resolve().parents[2]
_RESULT = re.compile(r"^(?P<test>tests/\S+?::\w+)\S* (?P<result>PASSED|FAILED|ERROR|SKIPPED|XFAIL)", re.MULTILINE)


class Limit(NamedTuple):
    """The lowest ratio of records per second to the peer's, and the most CPU seconds for a million records, if there is one."""

    ratio: float
    cpu: float | None = None


class Case(NamedTuple):
    """A connector to measure: the bench's method that runs it, and further keys of its config."""

    name: str
    method: str
    options: Mapping[str, str]
    limit: Limit


class Figures(NamedTuple):
    """The median ratio of records per second, and the CPU seconds for a million records."""

    ratio: float
    own_cpu: float
    peer_cpu: float


class Measurement(NamedTuple):
    """A figure of a check, and whether it is within its limit."""

    text: str
    good: bool


class Check(NamedTuple):
    """A check: the cases and figures that were measured for it, and the tests that show the rest."""

    what: str
    measured: Sequence[str] = ()
    tests: Sequence[str] = ()


_SOURCES, _SINKS = "tests/integration/test_java_sources.py", "tests/integration/test_java_sinks.py"
_DEBEZIUM, _LIST = "tests/integration/test_java_debezium.py", "tests/integration/test_java_plugin_list.py"
_BESIDE = "tests/integration/test_java_beside_connect.py"

CHECKS = (
    Check("FileStreamSource, strings", ["source-strings"]),
    Check("FileStreamSource, three transforms, JSON with schemas", ["source-json"]),
    Check("FileStreamSink, strings and JSON", ["sink-strings", "sink-json"]),
    Check(
        "records and stored offsets equal Kafka Connect's",
        tests=[f"{_BESIDE}::test_records_and_stored_offsets_are_those_of_kafka_connect"],
    ),
    Check(
        "a connector moves from Kafka Connect and back with its offsets",
        tests=[f"{_BESIDE}::test_a_java_connector_moves_from_kafka_connect_and_back"],
    ),
    Check(
        "Debezium: kills lose nothing, the slot advances",
        ["debezium-snapshot", "debezium-stream"],
        [
            f"{_DEBEZIUM}::test_snapshot_and_stream_arrive_the_slot_advances_and_a_restart_continues",
            f"{_DEBEZIUM}::test_killed_exactly_once_tasks_write_each_change_once",
        ],
    ),
    Check(
        "exactly once: each record once in spite of kills",
        tests=[f"{_SOURCES}::test_a_killed_exactly_once_task_writes_each_record_once_and_leaves_no_java_process"],
    ),
    Check(
        "errors.tolerance=all: counts and headers as Kafka Connect's",
        tests=[
            f"{_SINKS}::test_dead_letter_queue_headers_equal_those_of_kafka_connect",
            f"{_SINKS}::test_only_the_bad_records_of_a_batch_are_skipped",
            f"{_SOURCES}::test_records_that_fail_in_java_are_tolerated_or_fail_the_task",
        ],
    ),
    Check(
        "a hanging poll or put ends with its process, and the task is FAILED",
        tests=[
            f"{_SOURCES}::test_a_poll_that_hangs_is_interrupted_and_then_its_process_killed",
            f"{_SINKS}::test_a_hanging_put_ends_when_the_task_must_stop_and_its_records_are_read_again",
        ],
    ),
    Check(
        "a crash of the JVM or no memory: FAILED with the Java trace",
        tests=[f"{_SOURCES}::test_a_task_that_ends_its_process_or_throws_is_failed_with_the_java_trace"],
    ),
    Check(
        "the list of plugins equals Kafka Connect's; validation of Debezium",
        ["list", "cold validation", "warm validation"],
        [f"{_LIST}::test_the_list_equals_that_of_a_real_worker"],
    ),
    Check(
        "start, memory; two versions of Debezium side by side",
        ["first record", "memory"],
        [
            "tests/integration/test_java_drivers.py::test_java_connectors_run_on_submitted_drivers_and_survive_the_loss_of_their_java_processes"
        ],
    ),
)


def figure_of(case: Case, found: Figures) -> Measurement:
    """Return a case's figures, and whether they are within its limits."""
    good = found.ratio >= case.limit.ratio and found.own_cpu < found.peer_cpu
    text = f"{case.name}: {found.ratio:.2f}x (goal {case.limit.ratio}), CPU {found.own_cpu:.2f} of {found.peer_cpu:.2f} s"
    if case.limit.cpu is not None:
        good = good and found.own_cpu <= case.limit.cpu
        text += f" (goal {case.limit.cpu})"
    return Measurement(text, good)


def show_checks(measured: Mapping[str, Measurement]) -> bool:
    """Run the tests of the checks, print all checks, and return whether all hold."""
    results = run_tests([test for check in CHECKS for test in check.tests])
    rows: list[tuple[str, str, str]] = []
    for number, check in enumerate(CHECKS, 1):
        lines = [_line(measured.get(name), name) for name in check.measured]
        lines += [(results.get(test, False), test.partition("::")[2]) for test in check.tests]
        for good, text in lines:
            rows.append((f"{number}. {check.what}", {True: "yes", False: "NO", None: "not measured"}[good], text))
    print(table(("check", "holds", "figure, or test that shows it"), _without_repetition(rows)))
    return all(result == "yes" for _, result, _ in rows)


def _line(measurement: Measurement | None, name: str) -> tuple[bool | None, str]:
    return (None, name) if measurement is None else (measurement.good, measurement.text)


def _without_repetition(rows: Iterable[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    shown: list[tuple[str, str, str]] = []
    last = ""
    for check, holds, text in rows:
        shown.append(("" if check == last else check, holds, text))
        last = check
    return shown


def run_tests(tests: Sequence[str]) -> dict[str, bool]:
    """Run tests and return which of them passed, with all their parameters."""
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "--tb=short", *tests]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    print(done.stdout + done.stderr if done.returncode else done.stdout.splitlines()[-1])
    passed: dict[str, bool] = {}
    for match in _RESULT.finditer(done.stdout):
        passed[match["test"]] = passed.get(match["test"], True) and match["result"] == "PASSED"
    return passed
