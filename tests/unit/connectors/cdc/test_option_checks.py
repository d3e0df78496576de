"""Options of change data capture that Debezium refuses, or that would be ignored."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from sluiceway.config.definition import ConfigDef
from sluiceway.connectors.cdc import option_checks
from sluiceway.connectors.cdc.mysql.config import DEFINITION
from sluiceway.connectors.cdc.naming_strategies import STRATEGIES
from sluiceway.connectors.cdc.option_checks import add_problems, ignored_options, warn_of_ignored
from sluiceway.connectors.cdc.postgres.keys import CONFIG

ROOT = Path(option_checks.__file__).parent
POSTGRESQL = {"name": "c", "topic.prefix": "p", "database.hostname": "h", "database.user": "u", "database.dbname": "d"}
HISTORY = "schema.history.internal.kafka."
MARIADB = {
    **{key: value for key, value in POSTGRESQL.items() if key != "database.dbname"},
    "database.server.id": "1",
    f"{HISTORY}bootstrap.servers": "b:1",
    f"{HISTORY}topic": "t",
}
BASES: dict[str, tuple[ConfigDef, dict[str, str]]] = {"postgresql": (CONFIG, POSTGRESQL), "mariadb": (DEFINITION, MARIADB)}


def errors(database: str, changes: dict[str, str]) -> dict[str, str]:
    definition, base = BASES[database]
    config = {**base, **changes}
    found = definition.validate(config)
    add_problems(found, config, postgresql=database == "postgresql")
    return {name: value.errors[0] for name, value in found.items() if value.errors}


REGEX_NAMES = {"topic.naming.strategy": "io.debezium.schema.DefaultRegexTopicNamingStrategy"}
REFUSED = [
    ({"topic.prefix": "bad prefix*"}, "topic.prefix", "has invalid format (only the underscore, hyphen, dot and alphanumeric"),
    ({"message.key.columns": "nonsense"}, "message.key.columns", "invalid format"),
    ({"message.key.columns": "t:"}, "message.key.columns", "invalid format"),
    ({"message.key.columns": "(:a"}, "message.key.columns", "("),
    ({"post.processors": "reselector"}, "post.processors", "no post processors"),
    ({"converters": ""}, "converters", "converter"),
    ({"topic.naming.strategy": "com.acme.Names"}, "topic.naming.strategy", "io.debezium.schema.SchemaRegexTopicNamingStrategy"),
    (REGEX_NAMES, "topic.regex", "A value is required"),
    ({**REGEX_NAMES, "topic.regex": "("}, "topic.regex", "regular expression is expected"),
    ({**REGEX_NAMES, "topic.regex": "a(.)"}, "topic.replacement", "must be non-empty if topic.regex is set"),
    ({**REGEX_NAMES, "topic.regex": "a(.)", "topic.replacement": "$2"}, "topic.replacement", "No group 2"),
    ({**REGEX_NAMES, "topic.regex": "a", "topic.replacement": "b", "topic.key.field.regex": "["}, "topic.key.field.regex", "["),
    (
        {**REGEX_NAMES, "topic.regex": "a", "topic.replacement": "b", "topic.key.field.regex": "c"},
        "topic.key.field.replacement",
        "must be non-empty",
    ),
    ({"snapshot.mode": "custom"}, "snapshot.mode", "Java class"),
    ({"snapshot.mode": "custom", "snapshot.mode.custom.name": "x"}, "snapshot.mode", "Java class"),
    ({"snapshot.query.mode": "custom"}, "snapshot.query.mode", "select_all"),
    ({"max.queue.size": "100"}, "max.queue.size", "Must be larger than the maximum batch size"),
    ({"max.queue.size": "100", "max.batch.size": "100"}, "max.queue.size", "Must be larger than the maximum batch size"),
    ({"max.batch.size": "10000"}, "max.batch.size", "Must be larger than the maximum batch size"),
    ({"skipped.operations": "none,c"}, "skipped.operations", "'none' cannot be specified with other skipped operation types"),
    ({"notification.enabled.channels": "log,sink"}, "notification.sink.topic.name", "must be provided"),
    ({"notification.enabled.channels": "pigeon"}, "notification.enabled.channels", "pigeon"),
    ({"signal.enabled.channels": "source,pigeon"}, "signal.enabled.channels", "pigeon"),
    ({"unavailable.value.placeholder": "hex:zz"}, "unavailable.value.placeholder", "hexadecimal"),
    ({"snapshot.tables.order.by.row.count": "up"}, "snapshot.tables.order.by.row.count", "disabled, ascending, descending"),
    ({"event.processing.failure.handling.mode": "cry"}, "event.processing.failure.handling.mode", "fail"),
]
ONLY: dict[str, list[tuple[dict[str, str], str, str]]] = {
    "postgresql": [
        ({"replica.identity.autoset.values": "nonsense"}, "replica.identity.autoset.values", "invalid format"),
        ({"replica.identity.autoset.values": "a.b:FULL,c"}, "replica.identity.autoset.values", "invalid format"),
        ({"database.sslmode": "perhaps"}, "database.sslmode", "verify-full"),
        ({"converters": "isbn", "isbn.type": "x.Y"}, "converters", "no custom converters"),
    ],
    "mariadb": [
        ({"database.server.id": "-1"}, "database.server.id", "positive number"),
        ({"database.server.id": "0"}, "database.server.id", "positive number"),
        ({"database.server.id": "4294967296"}, "database.server.id", "positive number"),
        ({"database.ssl.mode": "perhaps"}, "database.ssl.mode", "verify_identity"),
        ({"gtid.source.includes": "a"}, "gtid.source.includes", "all GTID sources"),
        ({"gtid.source.excludes": "a"}, "gtid.source.excludes", "all GTID sources"),
        ({"gtid.source.includes": "a", "gtid.source.excludes": "b"}, "gtid.source.excludes", '"gtid.source.includes" is already'),
        ({"inconsistent.schema.handling.mode": "cry"}, "inconsistent.schema.handling.mode", "warn"),
    ],
}
CASES = [(database, *case) for database in BASES for case in (*REFUSED, *ONLY[database])]


@pytest.mark.parametrize(("database", "changes", "key", "message"), CASES, ids=str)
def test_an_option_is_refused_with_its_key(database: str, changes: dict[str, str], key: str, message: str) -> None:
    assert message in errors(database, changes)[key]


@pytest.mark.parametrize("database", BASES)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"topic.prefix": "a-b.c_1"},
        {"message.key.columns": "public.a:x,y; (.*).b:z ;"},
        {"skipped.operations": "none"},
        {"skipped.operations": "c, u"},
        {"notification.enabled.channels": "sink,log", "notification.sink.topic.name": "n"},
        {"unavailable.value.placeholder": "hex:deadbeef"},
        {"unavailable.value.placeholder": "gone"},
        {"max.queue.size": "2049"},
        *({"topic.naming.strategy": each} for each in STRATEGIES if "Regex" not in each),
        {**REGEX_NAMES, "topic.regex": r"(.*)\.ord_(?<n>.*)", "topic.replacement": "$1.${n}"},
    ],
    ids=str,
)
def test_an_option_is_accepted(database: str, changes: dict[str, str]) -> None:
    assert errors(database, changes) == {}


def test_options_of_one_database_are_accepted() -> None:
    assert errors("postgresql", {"replica.identity.autoset.values": "public.a:FULL,public.(.*):index i, b.c:nothing"}) == {}
    assert errors("mariadb", {"database.ssl.mode": "VERIFY_CA", "database.server.id": "4294967295"}) == {}


def test_options_without_effect_are_named_in_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    config = {**MARIADB, "connect.keep.alive": "false", "table.ignore.builtin": "true", "query.fetch.size": "5"}
    assert ignored_options(config, DEFINITION, postgresql=False) == ["connect.keep.alive", "query.fetch.size"]
    warn_of_ignored(config, DEFINITION, postgresql=False)
    assert "[c] These options have no effect here: connect.keep.alive, query.fetch.size" in caplog.text
    warn_of_ignored(MARIADB, DEFINITION, postgresql=False)
    assert len(caplog.records) == 1


def test_options_of_regular_expressions_need_such_a_strategy() -> None:
    options = {"topic.regex": "a", "topic.replacement": "b", "topic.key.enforce.uniqueness": "false"}
    assert ignored_options({**MARIADB, **options}, DEFINITION, postgresql=False) == sorted(options)
    assert ignored_options({**MARIADB, **options, **REGEX_NAMES}, DEFINITION, postgresql=False) == []


@pytest.mark.parametrize("database", BASES)
def test_every_option_has_an_effect_or_is_refused_or_warned_about(database: str) -> None:
    """An option that nothing reads must be in the list of those without effect, or have a check that refuses it."""
    definition, _ = BASES[database]
    folder = ROOT / ("postgres" if database == "postgresql" else "mysql")
    files = [*ROOT.glob("*.py"), *folder.rglob("*.py")]
    code = "\n".join(_without_definitions(each.read_text()) for each in files if each.name not in ("keys.py", "option_checks.py"))
    checks: dict[str, Any] = option_checks._CHECKS | (
        option_checks._POSTGRESQL_CHECKS if database == "postgresql" else option_checks._BINLOG_CHECKS
    )
    told = option_checks._WITHOUT_EFFECT | option_checks._WITHOUT_EFFECT_IN_POSTGRESQL | checks.keys()
    unread = {key.name for key in definition if not _is_read(key.name, code)}
    assert unread - told <= _READ_OTHERWISE[database]


_READ_OTHERWISE: dict[str, set[str]] = {
    "postgresql": {
        *(f"{kind}.{which}.list" for kind in ("schema", "message.prefix") for which in ("include", "exclude")),
        "table.exclude.list",
        "include.schema.comments",
        "snapshot.mode.custom.name",
    },
    "mariadb": set(),
}
"""Options whose names are put together by the code that reads them, and those of a mode that is refused."""


def _without_definitions(text: str) -> str:
    return re.sub(r"_OWN: list\[Entry\].*?\n\]\n", "", text, flags=re.DOTALL)


def _is_read(name: str, code: str) -> bool:
    short = name.removeprefix("schema.history.internal.")
    return any(text in code for text in (f'"{name}"', f'{short}"', f".{short}", f'"{name.split(".", 1)[-1]}"'))
