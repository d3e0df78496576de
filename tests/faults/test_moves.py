"""Moves between a real Kafka Connect and Sluiceway whose command is killed at random, and called again.

MOVES=20: moves each way. SEED=1: when the command is killed.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from support import peer
from support.faults.rows import NewRow
from support.growing_file import GrowingFile
from support.kafka import Kafka
from support.migration import SluicewayInThreads, complete, file_sink, file_source

pytestmark = [pytest.mark.kafka, pytest.mark.peer]

STRINGS = dict.fromkeys(("key.converter", "value.converter"), "org.apache.kafka.connect.storage.StringConverter")
MOVES = int(os.environ.get("MOVES", "2"))
SEED = int(os.environ.get("SEED", "1"))
LONGEST = 6.0  # seconds; a move takes half of it


@pytest.mark.matrix(44)
def test_a_move_whose_command_is_killed_goes_on_when_it_is_called_again(
    kafka_bootstrap: str, unique: Callable[[str], str], tmp_path: Path, row: NewRow
) -> None:
    line = row(f"kill -9 of the command of {MOVES} moves there and back, at random", "0 lost, 0 duplicated")
    given, found, source, sink, lines, group = (unique(each) for each in ("in", "out", "source", "sink", "lines", "moves"))
    topics = (f"{group}-configs", f"{group}-offsets", f"{group}-status")
    worker = {"sluiceway.heartbeat.interval.ms": "500", **STRINGS}
    chance, kills = random.Random(SEED), 0  # noqa: S311 (no secret)
    with (
        peer.PeerDistributed(kafka_bootstrap, group, tmp_path / "peer", topics, STRINGS) as theirs,
        SluicewayInThreads(kafka_bootstrap, f"{group}-ours", **worker) as ours,
    ):
        ours.start_driver()
        growing = GrowingFile(tmp_path / given)
        configs = {source: file_source(growing.path, lines), sink: file_sink(tmp_path / found, lines)}
        for name, config in configs.items():
            peer.put_config(theirs.rest, name, config)
        for name in configs:
            peer.wait_for_state(theirs.rest, name, "RUNNING")
        command = [sys.executable, "-m", "sluiceway.cli.main", "migrate", "--from", theirs.rest, "--to", ours.rest]
        for way in ([], ["--back"]) * MOVES:
            while True:
                move = subprocess.Popen([*command, *way, "--execute", "--all"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                try:
                    said = move.communicate(timeout=chance.uniform(0.5, LONGEST))[0].decode()
                except subprocess.TimeoutExpired:
                    move.kill()
                    move.communicate()
                    kills += 1
                else:
                    assert move.returncode == 0, said
                    break
            growing.grows()
        began = time.monotonic()
        written = growing.close()
        copied = Counter(complete(tmp_path / found, written))
        sent = Counter(Kafka(kafka_bootstrap).values(lines, sum(Counter(written).values())))
    line.seen = f"{len(written)} lines through a source and a sink, {kills} kills"
    line.lost = sum(((Counter(written) - sent) | (Counter(written) - copied)).values())
    line.duplicated = sum(((sent - Counter(written)) | (copied - Counter(written))).values())
    line.recovered(time.monotonic() - began)
    assert kills
    assert (line.lost, line.duplicated) == (0, 0)
    line.holds = True
