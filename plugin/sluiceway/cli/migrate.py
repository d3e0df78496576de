"""``sluiceway migrate``: reports on the connectors of a Connect cluster, and moves them to another one."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluiceway.cli.common import SERVER_VARIABLE, Subparsers, client, say
from sluiceway.cli.output import add_output, table, text
from sluiceway.errors import ConfigError, ConnectError

if TYPE_CHECKING:
    from sluiceway.cli.migration import Move
    from sluiceway.cli.migration_cluster import Cluster
    from sluiceway.cli.migration_report import ConnectorReport
    from sluiceway.cli.migration_workers import Difference

_DESCRIPTION = (
    "Report what happens to the connectors of a Kafka Connect cluster here: which plugins run them, which are missing, and "
    "what validation says. With --execute, move connectors, several side by side: stop there, copy the offsets, start here. An "
    "interrupted move continues when the command is run again. Exit codes: 0 all connectors can move or have moved, 1 some "
    "cannot, 2 for an error."
)

_ALL, _SOME, _ERROR = 0, 1, 2


def register(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "migrate",
        help="report on the connectors of a Kafka Connect cluster, and move them here or back",
        description=_DESCRIPTION,
    )
    parser.add_argument(
        "--from", dest="source", required=True, metavar="URL", help="REST API that has the connectors, or a context's name"
    )
    parser.add_argument(
        "--to",
        dest="target",
        metavar="URL",
        help=f"REST API that gets the connectors, or a context's name (default: ${SERVER_VARIABLE} or the current context)",
    )
    parser.add_argument("--back", action="store_true", help="exchange --from and --to, to move connectors back")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument(
        "--connectors",
        metavar="NAMES",
        help="connectors, separated by commas; in a name, * and ? stand for any characters (default for the report: all)",
    )
    chosen.add_argument("--all", action="store_true", help="all connectors; with --back, those that were left stopped there")
    parser.add_argument("--execute", action="store_true", help="move the connectors that can move; the others stay as they are")
    parser.add_argument(
        "--delete-source", action="store_true", help="delete moved connectors there instead of leaving them stopped"
    )
    parser.add_argument(
        "--parallel", type=_count, default=4, metavar="NUMBER", help="connectors that move side by side (default: 4)"
    )
    parser.add_argument(
        "--timeout", type=float, default=300.0, metavar="SECONDS", help="time for each step of a connector (default: 300)"
    )
    parser.add_argument(
        "--connect-worker-config",
        type=Path,
        metavar="FILE",
        help="worker file of the cluster of --from; adds its internal topics and converters to the report",
    )
    parser.add_argument(
        "--worker-config",
        type=Path,
        metavar="FILE",
        help="worker file of the cluster of --to, to be compared with the other one (default: that of 'sluiceway up' if it is "
        "that cluster)",
    )
    parser.add_argument(
        "--accept",
        metavar="KEYS",
        default="",
        help="keys of the worker files, separated by commas, in which they may differ although connectors then have other bytes",
    )
    add_output(parser)
    parser.add_argument("--json", dest="output", action="store_const", const="json", help="the same as --output json")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the report or move connectors. Return 0, or 1 if not all connectors can move, or 2 for an error."""
    import sys

    try:
        return _run(options)
    except ConnectError as error:
        print(f"sluiceway: {error}", file=sys.stderr)
        return _ERROR
    except KeyboardInterrupt:
        if options.execute:
            print("sluiceway: interrupted. Run the same command again to continue.", file=sys.stderr)
        raise


def _run(options: argparse.Namespace) -> int:
    if options.execute and not (options.all or options.connectors):
        raise ConfigError("--execute moves connectors. Name them with --connectors a,b or give --all.")
    with ExitStack() as stack:
        source, target = (stack.enter_context(_client(each)) for each in (options.source, options.target))
        from sluiceway.cli.migration_cluster import Cluster

        clusters = [Cluster(source), Cluster(target)]
        if options.back:
            clusters.reverse()
        return _execute(options, *clusters) if options.execute else _report(options, *clusters)


def _client(server: str | None) -> Any:
    """Return a client. A URL gets no credentials except its own, so that no token reaches the other cluster."""
    from sluiceway.rest.client import ConnectClient

    if server is not None and "://" in server:
        return ConnectClient(server.split(","))
    return client(argparse.Namespace(server=None, context=server))


def _report(options: argparse.Namespace, source: Cluster, target: Cluster) -> int:
    from sluiceway.cli.migration_report import report_rows, worker_notes
    from sluiceway.cli.secrets import DeclaredPasswords

    _refuse_other_kafka(source, target)
    found = _differences(options, source, target)
    reports = _reports(options, source, target, found)
    file = _worker_files(options)[0]
    passwords = {key for each in (source, target) for key in DeclaredPasswords(each.api).keys(file)}
    notes = [_clusters_text(source, target), *_version_notes(source)]
    notes += [*worker_notes(reports, file, passwords, compared=found is not None), *_difference_notes(found)]
    shared = _is_shared(source, target)
    if shared:
        notes.append(_SHARED)
    if options.output == "table":
        print("\n".join(notes), end="\n\n")
        print(table(report_rows(reports)))
        for line in (line for report in reports for line in report.details()):
            print(line)
        print(f"\n{sum(report.movable for report in reports)} of {len(reports)} connectors can move")
    else:
        document = {"shared_topics": shared, "notes": notes, "connectors": [report.to_json() for report in reports]}
        document |= {} if found is None else {"worker_differences": [each.to_json() for each in found]}
        print(text(document, options.output))
    return _ALL if all(report.movable for report in reports) else _SOME


def _execute(options: argparse.Namespace, source: Cluster, target: Cluster) -> int:
    from sluiceway.cli.migration import Move, take_over
    from sluiceway.cli.migration_summary import summary_json, summary_rows

    _refuse_other_kafka(source, target)
    if _is_shared(source, target):
        say(_SHARED)
        take_over(source, target, say=say, timeout=options.timeout)
        return _ALL
    _refuse_old(source, target)
    began = time.monotonic()
    names = _names(options, source, target)
    found = _differences(options, source, target)
    for line in _difference_notes(found):
        _progress_line(options, line)
    unmovable = {report.name: report for report in _reports(options, source, target, found) if not report.movable}
    for report in unmovable.values():
        _progress_line(options, "\n".join([f"{report.name}: cannot move, nothing was changed", *report.details()[1:]]))
    moves = [Move(name, error="It cannot move. Nothing was changed.") for name in unmovable]
    moves += _moved([name for name in names if name not in unmovable], options, source, target)
    moves.sort(key=lambda move: move.name)
    moved, seconds = sum(move.done for move in moves), time.monotonic() - began
    if options.output == "table":
        print(f"\n{table(summary_rows(moves))}\n\n{moved} of {len(moves)} connectors have moved, in {seconds:.1f} s")
    else:
        print(text(summary_json(moves, seconds), options.output))
    return _ALL if moved == len(moves) else _SOME


def _moved(names: Sequence[str], options: argparse.Namespace, source: Cluster, target: Cluster) -> list[Move]:
    """Move connectors side by side, and show how far they are."""
    from concurrent.futures import ThreadPoolExecutor

    from rich.console import Console

    from sluiceway.cli.migration import Mover
    from sluiceway.cli.migration_summary import Progress

    console = Console(stderr=True)
    with console.status(f"{len(names)} connectors") as status, ThreadPoolExecutor(options.parallel) as pool:
        progress = Progress(len(names), partial(_progress_line, options), status.update if console.is_terminal else None)
        mover = Mover(source, target, timeout=options.timeout, changed=progress.changed)
        moves = [pool.submit(mover.move, name, delete_source=options.delete_source) for name in names]
        try:
            return [move.result() for move in moves]
        except BaseException:
            mover.cancel()
            pool.shutdown(cancel_futures=True)
            raise


def _progress_line(options: argparse.Namespace, line: str) -> None:
    """Print a line about moves that go on: not among a document for programs."""
    import sys

    print(line, file=sys.stdout if options.output == "table" else sys.stderr, flush=True)


def _count(given: str) -> int:
    number = int(given)
    if number < 1:
        raise ValueError(given)
    return number


def _names(options: argparse.Namespace, source: Cluster, target: Cluster) -> list[str]:
    """Return the chosen connectors in order. Those that an earlier move has deleted on the source may be named.

    Back go all that have come from there, where they were left stopped, and none that was created here.
    """
    from sluiceway.config.parsing import parse_list

    there = source.api.connectors()
    if not options.connectors:
        return sorted(set(there) & set(target.api.connectors()) if options.back and options.execute else there)
    here = target.api.connectors() if options.execute else []
    names = list(dict.fromkeys(name for each in parse_list(options.connectors) for name in _matching(each, [*there, *here])))
    unknown = [name for name in names if name not in there and name not in here]
    if unknown:
        raise ConfigError(f"{source.text} has no connector {', '.join(unknown)}. It has: {', '.join(sorted(there)) or 'none'}.")
    return names


def _matching(given: str, names: Sequence[str]) -> Sequence[str]:
    """Return the connectors that a name or a pattern means; the name itself if there is none."""
    from fnmatch import fnmatchcase

    return [given] if given in names else [name for name in names if fnmatchcase(name, given)] or [given]


def _reports(
    options: argparse.Namespace, source: Cluster, target: Cluster, found: Sequence[Difference] | None
) -> list[ConnectorReport]:
    from dataclasses import replace

    from sluiceway.cli.migration_survey import Survey
    from sluiceway.config.parsing import parse_list

    infos = source.api.infos()
    survey = Survey(source, target)
    accepted = parse_list(options.accept)

    def differing(name: str) -> list[str]:
        return [each.key for each in found or () if each.bytes and name in each.connectors and each.key not in accepted]

    reports = [survey.report(infos[name]) for name in _names(options, source, target) if name in infos]
    return [replace(report, differing=differing(report.name)) for report in reports]


def _differences(options: argparse.Namespace, source: Cluster, target: Cluster) -> list[Difference] | None:
    """Compare the worker files for the chosen connectors; None if one of them is not known."""
    from sluiceway.cli.migration_workers import differences
    from sluiceway.cli.secrets import DeclaredPasswords

    there, here = _worker_files(options)
    if there is None or here is None:
        return None
    names, infos = _names(options, source, target), source.api.infos()
    passwords = {key for each in (source, target) for file in (there, here) for key in DeclaredPasswords(each.api).keys(file)}
    return differences(there, here, {name: infos[name] for name in names if name in infos}, passwords)


def _difference_notes(found: Sequence[Difference] | None) -> list[str]:
    if found is None:
        return []
    return [each.text() for each in found] or ["The worker files agree in what these connectors take from them."]


def _worker_files(options: argparse.Namespace) -> tuple[Mapping[str, str] | None, Mapping[str, str] | None]:
    """Return the worker files of the source and the target, as far as they are known."""
    from sluiceway.config.properties import read_properties

    files = [options.connect_worker_config, options.worker_config or _local_worker_file(options.target)]
    there, here = (None if each is None else read_properties(each) for each in files)
    return (here, there) if options.back else (there, here)


def _local_worker_file(server: str | None) -> Path | None:
    """Return the worker file of the stack of ``sluiceway up``, if its REST API has this address or none is given."""
    from sluiceway.folders import state_home
    from sluiceway.stack.addresses import recorded, running_rest

    running, addresses = running_rest(state_home()), recorded(state_home())
    if running is None or addresses is None or server not in (None, running):
        return None
    return Path(addresses.worker_file)


def _is_shared(source: Cluster, target: Cluster) -> bool:
    from sluiceway.cli.migration_report import is_shared

    return is_shared(source.api.statuses(), target.api.statuses())


def _clusters_text(source: Cluster, target: Cluster) -> str:
    def described(cluster: Cluster) -> str:
        return f"{'Sluiceway' if cluster.is_sluiceway else 'Kafka Connect'} {cluster.root.get('version')} at {cluster.text}"

    return f"From {described(source)} to {described(target)}, Kafka cluster {source.root.get('kafka_cluster_id')}."


def _version_notes(source: Cluster) -> Sequence[str]:
    from sluiceway.cli.migration_steps import too_old

    if not too_old(str(source.root.get("version")), (3, 5)):
        return ()
    return (_old(source, "3.5"),)


def _old(cluster: Cluster, needed: str) -> str:
    return (
        f"{cluster.text} has version {cluster.root.get('version')}. --execute needs {needed} for its requests to stop connectors "
        "and to copy offsets. With an older one, let Sluiceway take over its internal topics: use its group.id and topics in the "
        "worker file, and stop its workers."
    )


def _refuse_old(source: Cluster, target: Cluster) -> None:
    from sluiceway.cli.migration_steps import too_old

    # Stopping and GET offsets are 3.5's (KIP-875); setting offsets is 3.6's, and initial_state 3.7's (KIP-980).
    for cluster, needed in ((source, (3, 5)), (target, (3, 7))):
        if too_old(str(cluster.root.get("version")), needed):
            raise ConfigError(_old(cluster, f"{needed[0]}.{needed[1]}"))


def _refuse_other_kafka(source: Cluster, target: Cluster) -> None:
    ids = [cluster.root.get("kafka_cluster_id") for cluster in (source, target)]
    if None not in ids and ids[0] != ids[1]:
        raise ConfigError(
            f"{source.text} uses the Kafka cluster {ids[0]}, {target.text} uses {ids[1]}. Offsets of sinks are valid in one "
            "Kafka cluster only. Let both use the same bootstrap.servers."
        )


_SHARED = (
    "Both clusters use the same internal topics: configs, offsets and states are already there. Nothing is copied. Stop the "
    "workers of the source; then the target runs the connectors."
)
