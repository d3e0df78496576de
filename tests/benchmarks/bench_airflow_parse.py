"""Measures what many connectors cost Airflow's DAG processor and scheduler while none of them has anything to do.

Run: python tests/benchmarks/bench_airflow_parse.py [--connectors N] [--paused N] [--minutes N] [--set SECTION__OPTION=VALUE]

Writes connectors to the config topic of a local stack: paused ones, and micro-batches without a schedule, so that no driver
starts. Prints how long Airflow takes to have all their DAGs, and then, over some minutes, the processor time of the DAG
processor with its parsing processes, of the scheduler, and the scheduler's loop. A last table has the parse of one file: the
processor time of a process that parses it first, of one that has the operators imported, and the modules whose import is slowest.

Passes if the DAG processor uses less than half a core and the scheduler's loop always takes less than 5 s.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import psutil

from sluiceway.config.properties import read_properties
from sluiceway.config.worker import WorkerConfig
from sluiceway.stack.airflow import airflow_process
from sluiceway.storage.config_backing_store import KafkaConfigBackingStore
from sluiceway.storage.model import TargetState
from support.eventually import eventually
from support.stack import RunningStack
from support.toggles import table

MOST_CORES = 0.5
MOST_LOOP_SECONDS = 5.0
_LOOP = re.compile(r"Ran scheduling loop in ([\d.]+) (ms|seconds|s)\b")
_PARSE = """
import time
import airflow.sdk, airflow.dag_processing.processor
if {warm}:
    import sluiceway.operators, sluiceway.provider.dag_bundle.connector_dag
before = time.process_time()
exec(compile(open({file!r}).read(), {file!r}, "exec"), {{}})
print(time.process_time() - before)
"""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connectors", type=int, default=1000)
    parser.add_argument("--paused", type=int, help="default: nine of ten")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--set", action="append", default=[], metavar="SECTION__OPTION=VALUE", help="a setting of Airflow")
    return parser.parse_args()


def define(stack: RunningStack, connectors: int, paused: int) -> None:
    """Write connectors to the config topic, of which ``paused`` are paused."""
    store = KafkaConfigBackingStore(WorkerConfig.of(read_properties(Path(stack.addresses.worker_file))))
    store.start()
    try:
        for number in range(connectors):
            name = f"many-{number:04}"
            config = {"name": name, "connector.class": "FileStreamSource", "file": f"/nowhere/{name}", "topic": name}
            if number < paused:
                store.put_connector(name, config, TargetState.PAUSED)
            else:
                store.put_connector(name, {**config, "airflow.mode": "micro-batch"})
    finally:
        store.stop()


def count(stack: RunningStack, path: str, **parameters: object) -> int:
    return int(stack.airflow.get(path, params={"limit": 1, **parameters}).json()["total_entries"])  # type: ignore[dict-item]


class Usage:
    """The processor time that a component of Airflow and its child processes use, ended ones included."""

    def __init__(self, stack: RunningStack, component: str) -> None:
        pid = airflow_process(component, stack.home).status().pid
        assert pid is not None
        self._root = psutil.Process(pid)
        self._began, self._before = time.monotonic(), self._seconds()

    def _seconds(self) -> float:
        total = 0.0
        for process in (self._root, *self._root.children(recursive=True)):
            try:
                total += sum(process.cpu_times()[:4])
            except psutil.NoSuchProcess:
                continue
        return total

    def cores(self) -> float:
        return (self._seconds() - self._before) / (time.monotonic() - self._began)


def loops(stack: RunningStack, since: int) -> list[float]:
    """Return the seconds of each of the scheduler's loops in its log after an offset."""
    log = stack.home / "airflow-scheduler.log"
    with log.open("rb") as file:
        file.seek(since)
        text = file.read().decode(errors="replace")
    return [float(found[1]) / (1000 if found[2] == "ms" else 1) for found in _LOOP.finditer(text)]


def parse_seconds(stack: RunningStack, file: Path, *, warm: bool) -> float:
    """Return the processor time of a file's parse in a process that has imported Airflow; if ``warm``, also the operators."""
    code = _PARSE.format(warm=warm, file=str(file))
    done = subprocess.run(
        [sys.executable, "-c", code], env=stack.airflow_environment(), capture_output=True, text=True, check=True
    )
    return float(done.stdout.split()[-1])


def slow_imports(stack: RunningStack, number: int = 12) -> list[tuple[str, float]]:
    """Return the modules that the operators import beside Airflow's SDK, with the seconds of their own import."""
    code = "import airflow.sdk, airflow.dag_processing.processor; import sys; print('MARK', file=sys.stderr); "
    code += "import sluiceway.operators, sluiceway.provider.dag_bundle.connector_dag"
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", code],
        env=stack.airflow_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    found = re.findall(r"import time:\s+(\d+) \|\s+\d+ \|\s+(\S+)", done.stderr.partition("MARK")[2])
    return sorted(((name, int(own) / 1e6) for own, name in found), key=lambda each: -each[1])[:number]


def measure(stack: RunningStack, options: argparse.Namespace) -> Mapping[str, str | float]:
    paused = options.connectors * 9 // 10 if options.paused is None else options.paused
    first = Usage(stack, "dag-processor")
    began = time.monotonic()
    define(stack, options.connectors, paused)
    written = time.monotonic() - began
    eventually(lambda: count(stack, "/dags") >= options.connectors, within=3600, what="all DAGs")
    known = time.monotonic() - began
    parsing = first.cores() * known
    eventually(lambda: count(stack, "/dags", paused=True) >= paused, within=600, what="the paused DAGs")
    agreed = time.monotonic() - began
    runs = count(stack, "/dags/~/dagRuns")
    print(f"{options.connectors} connectors written in {written:.0f} s, their DAGs known after {known:.0f} s", flush=True)
    time.sleep(30)  # requests to parse that are left from the creation
    log = (stack.home / "airflow-scheduler.log").stat().st_size
    usage = {component: Usage(stack, component) for component in ("dag-processor", "scheduler", "triggerer", "api-server")}
    time.sleep(60 * options.minutes)
    took = loops(stack, log)
    return {
        "all DAGs known after, s": known,
        "paused flags set after, s": agreed,
        "DAG processor until then, CPU ms for each connector": 1000 * parsing / options.connectors,
        "runs of paused connectors": runs,
        **{f"{component} at rest, cores": each.cores() for component, each in usage.items()},
        "scheduler's loops": len(took),
        "scheduler's loop, longest, s": max(took, default=float("nan")),
        "scheduler's loop, mean, s": sum(took) / len(took) if took else float("nan"),
    }


def main() -> int:
    options = arguments()
    settings = {"LOGGING__NAMESPACE_LEVELS": "airflow.jobs.scheduler_job_runner.SchedulerJobRunner=DEBUG"}
    settings |= dict(each.split("=", 1) for each in options.set)
    with tempfile.TemporaryDirectory(prefix="bench-parse-") as folder:
        stack = RunningStack(Path(folder), settings=settings)
        try:
            found = measure(stack, options)
            print(table(("measured", "value"), [(name, f"{value:.3g}") for name, value in found.items()]))
            file = next((stack.home / "airflow" / "bundles" / "connectors" / "dags").glob("connector-many-*.py"))
            parses = {how: parse_seconds(stack, file, warm=how != "first") for how in ("first", "operators imported")}
            print(table(("parse of one file", "CPU ms"), [(how, f"{1000 * value:.1f}") for how, value in parses.items()]))
            print(table(("import of", "ms"), [(name, f"{1000 * value:.1f}") for name, value in slow_imports(stack)]))
        finally:
            stack.close()
    cores, loop = float(found["dag-processor at rest, cores"]), float(found["scheduler's loop, longest, s"])
    return 0 if cores < MOST_CORES and loop < MOST_LOOP_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
