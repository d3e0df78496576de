"""Decides whether a server's binary log still has a stored position, and describes what it lacks. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sluiceway.connectors.cdc.mysql.binlog.gtids import MariaDbGtidSet, MySqlGtidSet
from sluiceway.connectors.cdc.mysql.binlog.stream import StartPosition

_GONE = (
    "The connector is trying to read binlog starting at {position}, but this is no longer available on the server. "
    "Reconfigure the connector to use a snapshot when needed."
)
_REPAIR = (
    "To go on, either set snapshot.mode=when_needed and restart the connector, for a new snapshot of all captured tables; "
    "or delete its "
    "offsets, set snapshot.mode=no_data, and send the signal execute-snapshot for the captured tables: an incremental "
    "snapshot repairs "
    "them while changes are captured again."
)


def lost_message(start: StartPosition, gap: str) -> str:
    """Return the error for a position that the log no longer has: Debezium's text, what is missing, and what to do."""
    return f"{_GONE.format(position=start.gtids or f'{start.file}:{start.position}')} {gap} {_REPAIR}"


@dataclass(frozen=True)
class LogState:
    """A server's binary log.

    Attributes:
        files: names and sizes in bytes, oldest first.
        executed: the GTIDs of all transactions of the log so far, or "" if the server has none.
        purged: the GTIDs of the transactions before the oldest file.
        mariadb: whether the GTIDs are MariaDB's.
        keeps: seconds after which files are purged; 0 if they are kept.
    """

    files: tuple[tuple[str, int], ...]
    executed: str = ""
    purged: str = ""
    mariadb: bool = True
    keeps: int = 0

    def behind(self, file: str, position: int) -> int:
        """Return the bytes of log behind a position; 0 if its file is not there."""
        names = [name for name, _ in self.files]
        if file not in names:
            return 0
        at = names.index(file)
        return max(0, sum(size for _, size in self.files[at:]) - position)


class _Kept:
    """The GTIDs of the sources to keep. Another server may have gone on with a domain of MariaDB's."""

    def __init__(self, gtids: str, keep: Callable[[str], bool], *, mariadb: bool) -> None:
        self._kind = MariaDbGtidSet if mariadb else MySqlGtidSet
        self._keep = keep
        self.gtids = str(self._kind.parse(gtids).filtered(keep))
        self._domains = {str(domain) for domain in _domains(self.gtids)} if mariadb else set()

    def of(self, gtids: str) -> str:
        return str(self._kind.parse(gtids).filtered(lambda each: self._keep(each) or each.partition("-")[0] in self._domains))


def find_gap(start: StartPosition, log: LogState, keep: Callable[[str], bool] | None = None) -> str | None:
    """Return what the log lacks behind a position, or None if it has everything, of all sources of GTIDs or of those to keep."""
    if keep is not None and start.gtids:
        kept = _Kept(start.gtids, keep, mariadb=log.mariadb)
        if not kept.gtids:
            return None
        start = replace(start, gtids=kept.gtids)
        log = replace(log, executed=kept.of(log.executed), purged=kept.of(log.purged))
    if not log.files:
        return "The server has no binary log. Start it with log_bin."
    if start.gtids:
        return _mariadb_gap(start.gtids, log) if log.mariadb else _mysql_gap(start.gtids, log)
    return _file_gap(start, log) if start.file else None


def _file_gap(start: StartPosition, log: LogState) -> str | None:
    sizes = dict(log.files)
    first, last = log.files[0][0], log.files[-1][0]
    if start.file in sizes:
        if start.position <= sizes[start.file]:
            return None
        return (
            f"{start.file} has {sizes[start.file]:,} bytes, {start.position - sizes[start.file]:,} fewer than the stored "
            f"offset: the server was "
            "restored from a backup, or is another one. Changes that the topics have may be missing in the database."
        )
    if _number(start.file) < _number(first):
        return (
            f"The server has purged its log before {first}. Changes from {start.file}:{start.position} to {first}:4 are missing."
        )
    return (
        f"The server's log ends with {last}, before the stored offset {start.file}:{start.position}: its log was reset, the "
        f"server was "
        "restored from a backup, or it is another one."
    )


def _mariadb_gap(gtids: str, log: LogState) -> str | None:
    stored = _domains(gtids)
    executed, purged = _domains(log.executed), _domains(log.purged)
    for domain, sequence in sorted(stored.items()):
        if (executed and executed.get(domain, sequence) < sequence) or (stored and not executed):
            return (
                f"The server's log ends at GTID '{log.executed}', before the stored offset '{gtids}': its log was reset, "
                f"the server was restored "
                "from a backup, or it is another one. Changes that the topics have may be missing in the database."
            )
    lost = {domain: last for domain, last in purged.items() if stored.get(domain, 0) < last}
    if not lost:
        return None
    ranges = ", ".join(f"{domain}-*-{stored.get(domain, 0) + 1} to {domain}-*-{last}" for domain, last in sorted(lost.items()))
    return f"The server has purged its log before {log.files[0][0]}. Transactions {ranges} are missing."


def _mysql_gap(gtids: str, log: LogState) -> str | None:
    stored = MySqlGtidSet.parse(gtids)
    ahead = stored.minus(MySqlGtidSet.parse(log.executed))
    if ahead.intervals:
        return (
            f"The server has not executed the transactions {ahead}, which the stored offset has: the server was restored "
            f"from a backup, or is "
            "another one. Changes that the topics have may be missing in the database."
        )
    lost = MySqlGtidSet.parse(log.purged).minus(stored)
    return f"The server has purged the transactions {lost} from its log; they are missing." if lost.intervals else None


def _domains(gtids: str) -> dict[int, int]:
    found: dict[int, int] = {}
    for (domain, _), sequence in MariaDbGtidSet.parse(gtids).positions.items():
        found[domain] = max(sequence, found.get(domain, 0))
    return found


def _number(file: str) -> int:
    digits = file.rpartition(".")[2]
    return int(digits) if digits.isdigit() else 0


def danger_of(age: float, behind: int, log: LogState) -> str | None:
    """Return a warning if the server may soon purge log that was not read. ``age`` is that of the oldest such change, in "
    "seconds."""
    if not log.keeps or not behind or age < log.keeps / 2:
        return None
    left = max(0.0, log.keeps - age)
    return (
        f"The connector is {age:,.0f} s behind, with {behind >> 20} MiB of binary log to read. The server may purge this "
        f"log in {left:,.0f} s "
        "(binlog_expire_logs_seconds). Check that the connector runs and keeps up, or keep the log for longer."
    )
