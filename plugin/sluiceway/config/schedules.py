"""Checks the keys that say when Airflow runs a connector. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from urllib.parse import urlsplit

from sluiceway.config.definition import ConfigValue
from sluiceway.errors import ConfigError
from sluiceway.java.numbers import whole_number

MODE = "airflow.mode"
"""Key of the choice between a connector that runs all the time and one that runs by a schedule."""
LONG_RUNNING, MICRO_BATCH = "long-running", "micro-batch"
SCHEDULE = "airflow.schedule"
CATCHUP = "airflow.catchup"
START_DATE = "airflow.start.date"
DAG = "airflow.dag"
"""Key of the id of the hand-written DAG that runs the connector. Without it, a DAG is generated."""
CONFIG_TASK = "airflow.config.task"
"""Key of the id of that DAG's task which sets the config. Only the task writes it."""

CONTINUOUS = "@continuous"
NO_CRON = (CONTINUOUS, "@once")
ON_CHANGE = "on-change"
"""The schedule of a source whose system is watched: a run starts when there is something new."""
_PRESETS = ("@hourly", "@daily", "@weekly", "@monthly", "@quarterly", "@yearly")
_ASSET, _LAG = "asset:", "lag:"
_LONGEST_URI = 1500  # Airflow's


def is_event(schedule: str) -> bool:
    """Return whether a schedule is that of assets, of a lag, or of changes, and not one of times."""
    return schedule == ON_CHANGE or schedule.startswith((_ASSET, _LAG))


def assets_of(schedule: str | None) -> tuple[tuple[str, ...], bool]:
    """Return the URIs in ``asset:<uri>,<uri>`` (all of them) or ``asset:<uri>|<uri>`` (any of them), and whether any counts.

    Raises ConfigError.
    """
    if schedule is None or not schedule.startswith(_ASSET):
        return (), False
    text = schedule[len(_ASSET) :]
    any_of = "|" in text
    uris = tuple(each.strip() for each in text.split("|" if any_of else ",") if each.strip())
    if not uris or not all("://" in each for each in uris):
        raise ConfigError(SCHEDULE, schedule, f"after {_ASSET} come URIs of assets, separated by commas (all) or | (any)")
    for uri in uris:
        check_asset(SCHEDULE, uri)
    return uris, any_of


def check_asset(key: str, uri: str) -> None:
    """Raise ConfigError for a URI that Airflow's assets cannot have."""
    if not uri.isascii() or len(uri) > _LONGEST_URI:
        raise ConfigError(key, uri, f"an asset's URI has ASCII characters only, {_LONGEST_URI} at most")
    try:
        scheme = urlsplit(uri).scheme.lower()
    except ValueError as error:
        raise ConfigError(key, uri, f"not a URI: {error}") from error
    if scheme in ("", "airflow"):
        raise ConfigError(key, uri, "an asset's URI has a scheme, which is not airflow")


def lag_of(schedule: str | None, *, is_sink: bool) -> int | None:
    """Return the number in ``lag:<n>``. Raises ConfigError."""
    if schedule is None or not schedule.startswith(_LAG):
        return None
    number = whole_number(schedule[len(_LAG) :].strip())
    if not number:
        raise ConfigError(SCHEDULE, schedule, f"after {_LAG} comes how many records there must be, such as {_LAG}1000")
    if not is_sink:
        raise ConfigError(SCHEDULE, schedule, "only a sink has a lag: Kafka does not know how much a source has left")
    return number


def is_on_change(schedule: str | None, *, is_sink: bool) -> bool:
    """Return whether a schedule is ``on-change``. Raises ConfigError for that of a sink."""
    if schedule == ON_CHANGE and is_sink:
        raise ConfigError(SCHEDULE, schedule, f"only sources are watched: a sink runs when it has records left, with {_LAG}<n>")
    return schedule == ON_CHANGE


def check_times(schedule: str | None) -> None:
    """Raise ConfigError for a schedule of times that is neither a preset of Airflow nor a cron expression that comes true."""
    if schedule is None or schedule in (*NO_CRON, *_PRESETS):
        return
    from croniter import CroniterBadCronError, CroniterBadDateError, croniter

    try:
        croniter(schedule).get_next()
    except CroniterBadDateError as error:
        raise ConfigError(SCHEDULE, schedule, f"a cron expression that never comes true: {error}") from error
    except CroniterBadCronError as error:
        raise ConfigError(SCHEDULE, schedule, f"not a cron expression or preset that Airflow knows: {error}") from error


def moment(key: str, text: str | None) -> datetime | None:
    """Return a date or time in ISO 8601; UTC unless it says otherwise. Raises ConfigError."""
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    except ValueError as error:
        raise ConfigError(key, text, "must be a date or a moment in ISO 8601, such as 2024-01-31") from error
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)


def is_moment(name: str, value: ConfigValue) -> None:
    """Validate a key whose value is a date or time."""
    moment(name, None if value is None else str(value))


def are_assets(name: str, value: ConfigValue) -> None:
    """Validate a key whose value is a list of URIs."""
    for uri in value if isinstance(value, list) else ():
        check_asset(name, uri)


def are_functions(name: str, value: ConfigValue) -> None:
    """Validate a key whose value is a list of functions, as ``module.function``."""
    for function in value if isinstance(value, list) else ():
        parts = function.split(".")
        if len(parts) < 2 or not all(part.isidentifier() for part in parts):
            raise ConfigError(name, function, "must be a function with its module, such as alerts.notify")


def check_schedule(config: Mapping[str, str | None], *, is_sink: bool) -> None:
    """Raise ConfigError, with the key to change, for keys of a schedule that Airflow could not make a DAG of."""
    schedule, mode = config.get(SCHEDULE) or None, config.get(MODE) or LONG_RUNNING
    if mode == LONG_RUNNING and schedule not in (None, CONTINUOUS):
        raise ConfigError(SCHEDULE, schedule, f"only connectors with {MODE}={MICRO_BATCH} run by a schedule")
    if mode == LONG_RUNNING:
        schedule = CONTINUOUS
    assets_of(schedule)
    lag_of(schedule, is_sink=is_sink)
    is_on_change(schedule, is_sink=is_sink)
    has_times = schedule is not None and not is_event(schedule)
    if has_times:
        check_times(schedule)
    catches_up = (config.get(CATCHUP) or "").strip().lower() == "true"
    if catches_up and (not has_times or schedule == CONTINUOUS or not config.get(START_DATE)):
        raise ConfigError(CATCHUP, "true", f"needs a cron expression in {SCHEDULE}, and {START_DATE} to begin with")
