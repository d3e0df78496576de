"""Exact intervals: what belongs to a run, what is counted, and when a run is done."""

from mutants.mutant import Mutant

_MOVED = ("tests/integration/test_intervals.py",)
_LOGS = ("tests/cdc/test_intervals.py",)

MUTANTS = (
    Mutant(
        "interval-late",
        "runtime/sink/interval_filter.py",
        "                if offset < window.closed:\n",
        "                if offset <= window.closed:\n",
        "A late record is in no interval.",
    ),
    Mutant(
        "interval-end",
        "runtime/sink/interval_filter.py",
        "            if time >= end:\n",
        "            if time > end:\n",
        "A record at the very end of an interval is in two.",
    ),
    Mutant(
        "interval-sought",
        "runtime/sink/interval_filter.py",
        "                read.next = min(read.next, offset)\n",
        "                pass\n",
        "What a task reads again counts as moved.",
    ),
    Mutant(
        "interval-open-transaction",
        "runtime/sink/interval_filter.py",
        "            if window is not None and offset >= window.end:\n",
        "            if window is not None:\n",
        "A run does not wait for the records of an open transaction.",
    ),
    Mutant(
        "interval-passed",
        "runtime/sink/offset_commits.py",
        "            if put is None or found.get(partition, -1) >= put:\n",
        "            if True:\n",
        "Offsets are committed beyond records that are not safe.",
    ),
    Mutant(
        "interval-asked-topics",
        "storage/intervals.py",
        "    looked = topics.__contains__ if",
        "    looked = (lambda _topic: False) if",
        "Late records of a topic that comes later are lost.",
    ),
    Mutant(
        "interval-order",
        "storage/intervals.py",
        "                pick = max if other < boundary else min\n",
        "                pick = max\n",
        "A record is in two intervals that closed in another order.",
    ),
    Mutant(
        "interval-attempt",
        "storage/intervals.py",
        "    if known.state is not IntervalState.DONE:\n",
        "    if True:\n",
        "A cleared run continues the one that is done, and moves nothing.",
    ),
    Mutant(
        "interval-overlap",
        "provider/driver/interval_connector.py",
        "            elif start < entry.interval.start < end:\n",
        "            elif False:\n",
        "What another run has moved of an interval is moved twice.",
    ),
    Mutant(
        "interval-complete",
        "provider/driver/interval_runs.py",
        "            if window.start < window.end and done < window.end:\n",
        "            if False:\n",
        "A run is done whose last commit has failed.",
        _MOVED,
    ),
    Mutant(
        "interval-future",
        "provider/driver/interval_runs.py",
        "                after = offsets_at(admin, partitions, over_at, latest=now)\n",
        "                after = offsets_at(admin, partitions, over_at)\n",
        "A record from the future closes a partition for good.",
        _MOVED,
    ),
    Mutant(
        "interval-retention",
        "provider/driver/interval_runs.py",
        "    if again:\n",
        "    if False:\n",
        "Files are replaced by what retention has left.",
        _MOVED,
    ),
    Mutant(
        "interval-other-files",
        "connectors/files/naming.py",
        '    connector = f"{zlib.crc32(run.connector.encode()):08x}"\n',
        '    connector = "0"\n',
        "A cleared run deletes the files of another connector.",
    ),
    Mutant(
        "interval-log-end",
        "connectors/cdc/catch_up.py",
        "self._end <= micros <= self._now",
        "self._end < micros <= self._now",
        "A run takes the transaction that was committed at the end of its interval.",
    ),
    Mutant(
        "interval-log-future",
        "connectors/cdc/catch_up.py",
        "self._end <= micros <= self._now",
        "self._end <= micros",
        "A session with a timestamp in the future ends every interval until then.",
    ),
    Mutant(
        "interval-log-order",
        "provider/driver/interval_connector.py",
        "if self.in_order and (moved := known.moved_behind(self.end)):",
        "if self.in_order and (moved := None):",
        "A run of an hour whose changes later runs have moved takes the newest ones.",
    ),
    Mutant(
        "interval-log-driver",
        "worker/connector_runner.py",
        "wanted = [{**connector, **self._interval, **config} for config in configs]",
        "wanted = [{**connector, **config} for config in configs]",
        "A run of a log's interval moves what is available.",
    ),
    Mutant(
        "interval-log-left",
        "provider/driver/interval_runs.py",
        '            changes += _failed(others, "the run has ended before it had moved the interval")\n',
        "",
        "The driver of a run moves the interval of a run that died.",
        _LOGS,
    ),
)
