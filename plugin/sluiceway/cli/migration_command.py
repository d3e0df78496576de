"""Runs ``sluiceway migrate``: reports on connectors, moves them, or waits until shared topics are taken over."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

from sluiceway.cli.migration import Move, Mover
from sluiceway.cli.migration_cluster import MigrationCluster
from sluiceway.cli.migration_report import ConnectorReport, is_shared, report_rows, worker_notes
from sluiceway.cli.migration_steps import CHANGING, STOPPED, ConnectorView, mark_of, too_old
from sluiceway.cli.migration_summary import Progress, summary_json, summary_rows
from sluiceway.cli.migration_survey import Survey
from sluiceway.cli.migration_take_over import take_over
from sluiceway.cli.migration_workers import Difference, differences
from sluiceway.cli.output import table, text
from sluiceway.cli.secrets import DeclaredPasswords
from sluiceway.config.parsing import parse_list
from sluiceway.config.properties import read_properties
from sluiceway.errors import ConfigError
from sluiceway.folders import state_home
from sluiceway.stack.addresses import recorded, running_rest

_SHARED = (
    "Both clusters use the same internal topics: configs, offsets and states are already there. Nothing is copied. Stop the "
    "workers of the source; then the target runs the connectors."
)
_ENDED = "{} does not respond. This is about the connectors that {} reads in its own topics, as if it took them over."


class Migration:
    """Two clusters and the options of a command. ``report`` and ``execute`` return whether all chosen connectors can or did move.

    Raises ConfigError for a source that does not respond, unless ``--shared`` says that the target takes its topics over.
    """

    def __init__(self, options: argparse.Namespace, source: MigrationCluster, target: MigrationCluster) -> None:
        self._options = options
        self._source = source
        self._target = target

    def report(self) -> bool:
        """Print which connectors can move. Changes nothing."""
        notes, reports = self._notes(), self._reports
        if self._options.output == "table":
            print("\n".join(notes), end="\n\n")
            print(table(report_rows(reports)))
            for line in (line for report in reports for line in report.details()):
                print(line)
            print(f"\n{sum(report.movable for report in reports)} of {len(reports)} connectors can move")
        else:
            document = {"shared_topics": self._shared, "notes": notes, "connectors": [report.to_json() for report in reports]}
            found = self._differences
            document |= {} if found is None else {"worker_differences": [each.to_json() for each in found]}
            print(text(document, self._options.output))
        return all(report.movable for report in reports)

    def execute(self) -> bool:
        """Move connectors, or wait until the target has taken them over. Connectors that cannot move stay as they are."""
        began = time.monotonic()
        self._refuse_other_kafka()
        if not self._shared:
            self._refuse_old()
        for line in self._difference_lines():
            self._say(line)
        unmovable = {report.name: report for report in self._reports if not report.movable}
        for report in unmovable.values():
            self._say("\n".join([f"{report.name}: cannot move, nothing was changed", *report.details()[1:]]))
        movable = [name for name in self._names if name not in unmovable]
        moves = [Move(name, error="It cannot move. Nothing was changed.") for name in unmovable]
        if not self._shared:
            moves += self._moved(movable)
        elif unmovable and not self._options.connectors:
            raise ConfigError(
                f"{self._target.text} cannot run {', '.join(unmovable)}, and a take-over of the topics is of all connectors. "
                "Mend that first, or name the others with --connectors: these will fail at the target, until you go back."
            )
        else:
            self._say(_SHARED if self._source.responds() else _ENDED.format(self._source.text, self._target.text))
            moves += take_over(self._source, self._target, movable, say=self._say, timeout=self._options.timeout)
        return self._summed_up(sorted(moves, key=lambda move: move.name), time.monotonic() - began)

    def _summed_up(self, moves: Sequence[Move], seconds: float) -> bool:
        moved = sum(move.done for move in moves)
        undo = self._undo([move.name for move in moves if move.done and move.here])
        if self._options.output == "table":
            print(f"\n{table(summary_rows(moves))}\n\n{moved} of {len(moves)} connectors have moved, in {seconds:.1f} s")
            if undo is not None:
                print(f"To undo it: {undo}")
            if undo is not None and any(move.done and not move.here for move in moves):
                print("Those that were moved before go back with --connectors NAMES, or all of them with --all.")
        else:
            print(text({**summary_json(moves, seconds), "undo": undo}, self._options.output))
        return moved == len(moves)

    def _undo(self, names: Sequence[str]) -> str | None:
        """Return the command that moves back exactly what this one has moved; None if there is nothing to move back."""
        options = self._options
        if not names or self._shared or options.delete_source:
            return None
        clusters = [self._target, self._source] if options.back else [self._source, self._target]
        words = ["sluiceway", "migrate", "--from", clusters[0].text, "--to", clusters[1].text]
        files = {"--connect-worker-config": options.connect_worker_config, "--worker-config": options.worker_config}
        words += [word for key, file in files.items() if file is not None for word in (key, str(file))]
        words += ["--accept", options.accept] if options.accept else []
        return shlex.join([*words, *([] if options.back else ["--back"]), "--execute", "--connectors", ",".join(names)])

    def _moved(self, names: Sequence[str]) -> list[Move]:
        """Move connectors side by side, and show how far they are."""
        from rich.console import Console

        options, console = self._options, Console(stderr=True)
        with console.status(f"{len(names)} connectors") as status, ThreadPoolExecutor(options.parallel) as pool:
            progress = Progress(len(names), self._say, status.update if console.is_terminal else None)
            mover = Mover(self._source, self._target, timeout=options.timeout, changed=progress.changed)
            moves = [pool.submit(mover.move, name, delete_source=options.delete_source) for name in names]
            try:
                return [move.result() for move in moves]
            except BaseException:
                mover.cancel()
                pool.shutdown(cancel_futures=True)
                raise

    def _say(self, line: str) -> None:
        """Print a line of progress: to stderr if stdout gets a document for programs."""
        print(line, file=sys.stdout if self._options.output == "table" else sys.stderr, flush=True)

    # The clusters.

    @cached_property
    def _running(self) -> MigrationCluster | None:
        """The source, None if its workers have ended because the target takes over their topics."""
        responds = self._source.responds()
        if not responds and not self._options.shared:
            raise ConfigError(
                f"{self._source.text} does not respond. Is it running? If its workers have ended because {self._target.text} "
                "takes over their internal topics, add --shared."
            )
        running = self._source if responds else None
        for cluster in filter(None, (running, self._target)):
            cluster.await_topics(self._options.timeout, self._say)
        return running

    @cached_property
    def _infos(self) -> dict[str, dict[str, Any]]:
        return (self._running or self._target).api.infos()

    @cached_property
    def _shared(self) -> bool:
        """Whether both clusters use the same internal topics, as far as the source tells."""
        running = self._running
        return self._options.shared or running is None or is_shared(running.api.statuses(), self._target.api.statuses())

    @cached_property
    def _names(self) -> list[str]:
        """The chosen connectors in order. Those that an earlier move has deleted on the source may be named.

        Back go all that have come from there, where they were left stopped, and none that was created here.
        """
        options, there, here = self._options, list(self._infos), self._target.api.connectors()
        if not options.connectors:
            only_common = options.back and options.execute and not self._shared
            return sorted(set(there) & set(here) if only_common else there)
        known = [*there, *(here if options.execute else ())]
        names = list(dict.fromkeys(name for each in parse_list(options.connectors) for name in _matching(each, known)))
        if unknown := [name for name in names if name not in known]:
            text = f"{self._source.text} has no connector {', '.join(unknown)}. It has: {', '.join(sorted(there)) or 'none'}."
            raise ConfigError(text)
        return names

    @cached_property
    def _reports(self) -> list[ConnectorReport]:
        survey = Survey(self._running, self._target)
        accepted = parse_list(self._options.accept)

        def differing(name: str) -> list[str]:
            found = self._differences or ()
            return [each.key for each in found if each.bytes and name in each.connectors and each.key not in accepted]

        reports = [survey.report(self._infos[name]) for name in self._names if name in self._infos]
        there = {} if self._shared else self._target.api.infos()
        states = {} if self._shared else self._target.api.statuses()
        return [
            replace(report, differing=differing(report.name), **_progress(report, self._infos, there, states))
            for report in reports
        ]

    # The worker files.

    @cached_property
    def _files(self) -> tuple[Mapping[str, str] | None, Mapping[str, str] | None]:
        """The worker files of the source and the target, as far as they are known."""
        options = self._options
        files = [options.connect_worker_config, options.worker_config or _local_worker_file(options.target)]
        there, here = (None if each is None else read_properties(each) for each in files)
        return (here, there) if options.back else (there, here)

    @cached_property
    def _passwords(self) -> set[str]:
        """The keys of type password in the worker files."""
        clusters = [each for each in (self._running, self._target) if each is not None]
        return {key for each in clusters for file in self._files for key in DeclaredPasswords(each.api).keys(file)}

    @cached_property
    def _differences(self) -> list[Difference] | None:
        """The differences of the worker files for the chosen connectors; None if one of the files is not known."""
        there, here = self._files
        if there is None or here is None:
            return None
        chosen = {name: self._infos[name] for name in self._names if name in self._infos}
        return differences(there, here, chosen, self._passwords)

    # What is said of them.

    def _notes(self) -> list[str]:
        if self._running is None:
            notes = [_ENDED.format(self._source.text, self._target.text)]
        else:
            self._refuse_other_kafka()
            notes = [self._clusters_text(), *([self._old(self._source, "3.5")] if _is_old(self._source, (3, 5)) else [])]
        there = self._files[0]
        notes += worker_notes(self._reports, there, self._passwords, compared=self._differences is not None)
        notes += self._difference_lines()
        return [*notes, _SHARED] if self._shared and self._running is not None else notes

    def _difference_lines(self) -> list[str]:
        if self._differences is None:
            return []
        return [each.text() for each in self._differences] or ["The worker files agree in what these connectors take from them."]

    def _clusters_text(self) -> str:
        def described(cluster: MigrationCluster) -> str:
            return f"{'Sluiceway' if cluster.is_sluiceway else 'Kafka Connect'} {cluster.root.get('version')} at {cluster.text}"

        kafka = self._source.root.get("kafka_cluster_id")
        return f"From {described(self._source)} to {described(self._target)}, Kafka cluster {kafka}."

    def _refuse_other_kafka(self) -> None:
        if self._running is None:
            return
        ids = [cluster.root.get("kafka_cluster_id") for cluster in (self._source, self._target)]
        if None not in ids and ids[0] != ids[1]:
            raise ConfigError(
                f"{self._source.text} uses the Kafka cluster {ids[0]}, {self._target.text} uses {ids[1]}. Offsets of sinks are "
                "valid in one Kafka cluster only. Let both use the same bootstrap.servers."
            )

    def _refuse_old(self) -> None:
        # Stopping and GET offsets are 3.5's (KIP-875); setting offsets is 3.6's, and initial_state 3.7's (KIP-980).
        for cluster, needed in ((self._source, (3, 5)), (self._target, (3, 7))):
            if _is_old(cluster, needed):
                raise ConfigError(self._old(cluster, f"{needed[0]}.{needed[1]}"))

    @staticmethod
    def _old(cluster: MigrationCluster, needed: str) -> str:
        return (
            f"{cluster.text} has version {cluster.root.get('version')}. --execute needs {needed} for its requests to stop "
            "connectors and to copy offsets. With an older one, let Sluiceway take over its internal topics: use its group.id "
            "and topics in the worker file, and stop its workers."
        )


def _progress(
    report: ConnectorReport,
    here: Mapping[str, Mapping[str, Any]],
    there: Mapping[str, Mapping[str, Any]],
    states: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """Return how far a connector's move is, given the infos of both clusters, and the statuses on the target."""
    name = report.name
    if name not in there:
        return {}
    source, target = ConnectorView.of(here[name]["config"], {}), ConnectorView.of(there[name]["config"], states.get(name, {}))
    has_moved = report.state == STOPPED and target.state not in (STOPPED, CHANGING)
    return {"becomes": mark_of(source, target), "has_moved": has_moved}


def _is_old(cluster: MigrationCluster, needed: tuple[int, int]) -> bool:
    return too_old(str(cluster.root.get("version")), needed)


def _matching(given: str, names: Sequence[str]) -> Sequence[str]:
    """Return the connectors that a name or a pattern means; the name itself if there is none."""
    return [given] if given in names else [name for name in names if fnmatchcase(name, given)] or [given]


def _local_worker_file(server: str | None) -> Path | None:
    """Return the worker file of the stack of ``sluiceway up``, if its REST API has this address or none is given."""
    running, addresses = running_rest(state_home()), recorded(state_home())
    if running is None or addresses is None or server not in (None, running):
        return None
    return Path(addresses.worker_file)
