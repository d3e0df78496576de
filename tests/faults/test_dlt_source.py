"""DltSource while the process of its task is killed: five kinds of dlt sources, each in the order that it has.

The task runs in a process of its own, as on an executor, and the reader in another one, which must end with it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sluiceway.connectors.dlt import DltSourceConnector
from support.dlt_rest import RestApi
from support.dlt_task import config_of
from support.eventually import SOONEST, eventually
from support.exactly_once import exactly_once_worker
from support.faults.rows import NewRow
from support.kafka import Kafka
from support.source_process import SourceProcess, add_packages, task_config
from support.transactions import seen

pytestmark = pytest.mark.kafka

KILLS = int(os.environ.get("KILLS", "20"))
ROWS = int(os.environ.get("ROWS", "3000"))
PAGE = 100
PAUSE = 0.2  # seconds at each page, so that kills are within runs
DIALPAD = "dlt_community_sources.dialpad.source.dialpad_source"
_PACKAGE = "dlt-community-sources==0.8.0"


class Kind(NamedTuple):
    """A dlt source. ``by_page``: its state is stored after each page. ``field`` identifies a row.

    ``repeats``: each run gives all rows again, because the source has no cursor, or reads again what is newer than a day.
    """

    source: str
    args: dict[str, Any]
    table: str
    by_page: bool
    field: str = "id"
    repeats: bool = False


KINDS = {
    "generator, ascending": Kind("numbers", {"rows": ROWS, "page": PAGE, "pause": PAUSE}, "numbers", by_page=True),
    "generator, newest first": Kind(
        "numbers", {"rows": ROWS, "page": PAGE, "pause": PAUSE, "order": None, "descends": True}, "numbers", by_page=False
    ),
    "generator and transformer": Kind("derived", {"rows": ROWS, "page": PAGE, "pause": PAUSE}, "squares", by_page=False),
    "rest_api, incremental, 429": Kind("rest", {"kind": "events"}, "events", by_page=True),
    "rest_api, pages": Kind("rest", {"kind": "pages"}, "pages", by_page=False, repeats=True),
    "rest_api, cursor": Kind("rest", {"kind": "cursor"}, "cursor", by_page=False, repeats=True),
    "sql_database, rows": Kind("table", {"name": "t", "pause": PAUSE / PAGE}, "t", by_page=True),
    "sql_database, Arrow": Kind("table", {"name": "t", "backend": "pyarrow", "pause": PAUSE}, "t", by_page=True),
    "filesystem": Kind("files", {"pause": PAUSE / PAGE}, "jsonl", by_page=False),
    "dlt-community-sources, dialpad": Kind(
        DIALPAD, {"resources": ["calls"]}, "calls", by_page=False, field="call_id", repeats=True
    ),
}


@pytest.fixture(scope="module")
def api() -> Iterator[RestApi]:
    with closing(RestApi(ROWS, limited_every=15, delay=PAUSE)) as started:
        yield started


@pytest.fixture(scope="module")
def third_party(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with the package if the environment lacks it. It asks for Python 3.12, and runs on 3.11."""
    found = importlib.util.find_spec(DIALPAD.partition(".")[0])
    if found is not None:
        return ""
    folder = tmp_path_factory.mktemp("packages")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--ignore-requires-python", "--target", str(folder)]
    subprocess.run([*command, _PACKAGE], check=True)
    return str(folder)


def _completed(kind: Kind, api: RestApi, folder: Path) -> dict[str, Any]:
    """Return the arguments of a kind, after making what it reads."""
    if kind.source == "rest":
        return {**kind.args, "url": api.url}
    if kind.source == DIALPAD:
        return {**kind.args, "base_url": api.url}
    if kind.source == "table":
        with closing(sqlite3.connect(folder / "rows.db")) as database:
            database.execute("create table t (id integer primary key, name text, at timestamp)")
            database.executemany("insert into t values (?, ?, '2026-01-01 00:00:00.123456')", ((n, f"n{n}") for n in range(ROWS)))
            database.commit()
        return {**kind.args, "url": f"sqlite:///{folder}/rows.db"}
    if kind.source == "files":
        for number in range(0, ROWS, ROWS // 10):
            lines = (json.dumps({"id": each}) for each in range(number, number + ROWS // 10))
            (folder / f"{number:06}.jsonl").write_text("\n".join(lines) + "\n")
        return {**kind.args, "folder": f"file://{folder}"}
    return kind.args


def ids_in(bootstrap: str, topic: str, field: str, *, committed: bool) -> list[int]:
    return [int(json.loads(message.value() or b"")[field]) for message in seen(bootstrap, topic, committed=committed)]


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("once", [False, True], ids=["at least once", "exactly once"])
@pytest.mark.parametrize("name", KINDS)
def test_killed_many_times_each_row_is_in_the_topic(
    kafka_bootstrap: str,
    unique: Callable[[str], str],
    row: NewRow,
    chance: random.Random,
    api: RestApi,
    third_party: str,
    tmp_path: Path,
    name: str,
    once: bool,
) -> None:
    kind, kafka, prefix = KINDS[name], Kafka(kafka_bootstrap), f"{unique('dlt')}."
    topic = kafka.create(f"{prefix}{kind.table}")
    if kind.source == "derived":
        kafka.create(f"{prefix}numbers")
    bound = "0 duplicated" if once else f"at most {'a flush interval' if kind.by_page else 'a run'} for each kill duplicated"
    made = row(f"2: DltSource, {name}, {KILLS} kills -9 of the task", f"0 lost, {bound}")
    worker = {**exactly_once_worker(kafka_bootstrap, unique), "offset.flush.interval.ms": "500"}
    if not once:
        worker["exactly.once.source.support"] = "disabled"
    config = config_of("x", _completed(kind, api, tmp_path), topic_prefix=prefix)
    config |= {
        "name": unique("dlt-fault"),
        "connector.class": "DltSource",
        "dlt.source": kind.source if "." in kind.source else f"support.dlt_sources.{kind.source}",
        "dlt.secret.api_key": "a-key",
        "dlt.run.interval.ms": "1000",
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "false",
        "key.converter": "JsonConverter",
        **({"transaction.boundary": "connector"} if once else {}),
    }
    config = task_config(DltSourceConnector, config)
    longest = 0

    def full() -> bool:
        """Ask for the topic's end first, because reading it takes so long that a kill would come late."""
        return kafka.end(topic) >= ROWS and set(range(ROWS)) <= set(ids_in(kafka_bootstrap, topic, kind.field, committed=once))

    for number in range(1, KILLS + 1):
        started, before = time.monotonic(), kafka.end(topic)
        most = ROWS // KILLS if kind.by_page else ROWS
        wanted = ROWS if number == KILLS else chance.randrange(1, most)  # the last kill is at the end of a run
        with SourceProcess(config, worker, add_packages, (third_party,)) as task:
            eventually(lambda: kafka.end(topic) > before or not task.alive or full(), what="new records")  # noqa: B023
            assert task.alive
            made.recovered(time.monotonic() - started)
            eventually(lambda: kafka.end(topic) - before >= wanted or not task.alive or full(), latest=SOONEST)  # noqa: B023
            assert task.alive
        longest = max(longest, kafka.end(topic) - before)
    with SourceProcess(config, worker, add_packages, (third_party,)) as task:
        eventually(lambda: full() or not task.alive, what="the last row")
        assert task.alive
    found = Counter(ids_in(kafka_bootstrap, topic, kind.field, committed=once))
    made.seen = f"{found.total()} records of {ROWS} rows"
    made.lost, made.duplicated = ROWS - len(found), found.total() - len(found)
    assert set(found) == set(range(ROWS))
    if not once:
        assert made.duplicated <= (KILLS + 1) * longest
    elif kind.repeats:
        assert len(set(found.values())) == 1, "runs that were broken off are in the topic in part"
    else:
        assert made.duplicated == 0
