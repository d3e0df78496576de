"""Asset events of connectors that run all the time, and committed offsets by which they are made."""

from mutants.mutant import Mutant

_COMPLETE, _LIVE = "provider/live_assets/completeness.py", "provider/live_assets/live_assets.py"
_COMPLETENESS = ("tests/unit/provider/live_assets/test_completeness.py",)
_EVENTS = ("tests/unit/provider/live_assets/test_live_assets.py",)

MUTANTS = (
    Mutant(
        "live-left",
        _COMPLETE,
        "if offset < past[partition].closing}\n",
        "if offset + 1 < past[partition].closing}\n",
        "An hour is complete before its last record is committed.",
        tests=_COMPLETENESS,
    ),
    Mutant(
        "live-clock",
        _LIVE,
        "            if self._clock() * 1000 < end + settings.lateness:\n                return\n",
        "",
        "An hour is complete as soon as there is nothing to read.",
        tests=_EVENTS,
    ),
    Mutant(
        "live-open",
        _COMPLETE,
        "    if not past or any(each.is_open for each in past.values()):\n",
        "    if not past:\n",
        "An hour is complete although a transaction with its records is open.",
        tests=_COMPLETENESS,
    ),
    Mutant(
        "live-log",
        _COMPLETE,
        "    return bool(read) and min(read) >= moment\n",
        "    return bool(read) and max(read) >= moment\n",
        "An hour of a database log is complete although one of its parts is behind.",
        tests=_COMPLETENESS,
    ),
    Mutant(
        "live-paused",
        _COMPLETE,
        " and (is_running or has_later)\n",
        "\n",
        "An hour of a source that is paused is complete.",
        tests=_COMPLETENESS,
    ),
    Mutant(
        "live-lateness",
        _LIVE,
        "self._passed(name, config, seen, end + settings.lateness)",
        "self._passed(name, config, seen, end)",
        "Records that come within the lateness are not in the hour that is complete.",
        tests=_EVENTS,
    ),
    Mutant(
        "live-asked",
        _LIVE,
        "            seen.until, seen.is_asked = self._database.complete_until(uri), True\n",
        "            seen.is_asked = True\n",
        "After a restart of the API server, the hours that ended meanwhile have no event.",
        tests=_EVENTS,
    ),
    Mutant(
        "live-interval",
        _LIVE,
        " and self._clock() - seen.at >= settings.interval / 1000:",
        ":",
        "Each commit makes an event.",
        tests=_EVENTS,
    ),
    Mutant(
        "live-once",
        "provider/pause_sync/airflow_db.py",
        '                if known is not None and known >= extra["complete_until"]:\n                    return False\n',
        "",
        "Two API servers make an hour's event twice.",
        tests=("tests/unit/provider/pause_sync/test_airflow_db.py",),
    ),
)
