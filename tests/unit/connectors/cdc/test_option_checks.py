"""Options of change data capture that Debezium refuses, or that would be ignored."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from sluiceway.config.definition import ConfigDef
from sluiceway.connectors.cdc import option_checks
from sluiceway.connectors.cdc.ignored_options import ignored_options, warn_of_ignored
from sluiceway.connectors.cdc.keys import OVERRIDES
from sluiceway.connectors.cdc.mysql.config import DEFINITION
from sluiceway.connectors.cdc.naming_strategies import STRATEGIES
from sluiceway.connectors.cdc.option_checks import add_problems
from sluiceway.connectors.cdc.postgres.keys import CONFIG
from sluiceway.connectors.cdc.without_effect import OF_BINLOG, OF_POSTGRESQL

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

WITHOUT_EFFECT = {"postgresql": OF_POSTGRESQL, "mariadb": OF_BINLOG}


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
    *(
        ({name: "bad name*"}, name, "has invalid format (only the underscore")
        for name in (
            "topic.delimiter",
            "topic.heartbeat.prefix",
            "topic.transaction",
            "notification.sink.topic.name",
            "signal.kafka.topic",
        )
    ),
    *(
        ({name: "-5"}, name, "integer is expected")
        for name in (
            "max.queue.size.in.bytes",
            "signal.poll.interval.ms",
            "retriable.restart.connector.wait.ms",
            "streaming.delay.ms",
        )
    ),
    ({"incremental.snapshot.chunk.size": "0"}, "incremental.snapshot.chunk.size", "A positive, non-zero integer"),
    ({"errors.max.retries": "-2"}, "errors.max.retries", "-1 for no limit"),
    ({"column.propagate.source.type": "("}, "column.propagate.source.type", "("),
    ({"datatype.propagate.source.type": "["}, "datatype.propagate.source.type", "["),
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
    (
        {"column.mask.with.x.chars": "a.b.c"},
        "column.mask.with.x.chars",
        "There is no such option. Use one of column.truncate.to.",
    ),
    ({"column.mask.hash.SHA-256.salt.x": "a.b.c"}, "column.mask.hash.SHA-256.salt.x", "column.mask.hash.{algorithm}.with.salt."),
    ({"column.truncate.to.chars": "a.b.c"}, "column.truncate.to.chars", "There is no such option"),
    ({"column.mask.hash.CRC.with.salt.x": "a.b.c"}, "column.mask.hash.CRC.with.salt.x", "Unknown algorithm CRC of a mask."),
    (
        {"column.mask.hash.v2.SHA-3.with.salt.x": "a.b.c"},
        "column.mask.hash.v2.SHA-3.with.salt.x",
        "Unknown algorithm SHA-3 of a mask.",
    ),
    ({"column.mask.with.3.chars": "("}, "column.mask.with.3.chars", "("),
    ({OVERRIDES: "a.t"}, OVERRIDES, f"The statement is missing: set {OVERRIDES}.a.t"),
    ({OVERRIDES: "a.t,a.u", f"{OVERRIDES}.a.t": "select 1", f"{OVERRIDES}.a.u": " "}, OVERRIDES, f"set {OVERRIDES}.a.u"),
    ({"sourceinfo.struct.maker": "com.acme.Maker"}, "sourceinfo.struct.maker", "Debezium's form"),
    ({"transaction.metadata.factory": "com.acme.Factory"}, "transaction.metadata.factory", "DefaultTransactionMetadataFactory"),
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
        ({f"{HISTORY}topic": "bad*"}, f"{HISTORY}topic", "has invalid format"),
        ({"schema.history.internal.ddl.filter": "("}, "schema.history.internal.ddl.filter", "("),
        ({"gtid.source.includes": "("}, "gtid.source.includes", "regular expressions"),
        ({"gtid.source.excludes": "["}, "gtid.source.excludes", "regular expressions"),
        ({"gtid.source.includes": "a", "gtid.source.excludes": "b"}, "gtid.source.excludes", '"gtid.source.includes" is already'),
        ({"schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory"}, "schema.history.internal", "Kafka"),
        ({"database.ssl.mode": "verify_ca", "database.ssl.truststore": "f"}, "database.ssl.mode", "SSL_CERT_FILE"),
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
        {
            f"column.mask.hash.{each}.with.salt.x": "a.b.c"
            for each in ("MD5", "SHA", "SHA-1", "sha256", "SHA-512/256", "SHA3-256", "v2.SHA-384")
        },
        {OVERRIDES: "a.t, a.u", f"{OVERRIDES}.a.t": "select 1", f"{OVERRIDES}.a.u": "select 2"},
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
    files = [*ROOT.glob("*.py"), *folder.rglob("*.py"), ROOT.parents[1] / "config" / "signal_topic.py"]
    code = "\n".join(
        _without_definitions(each.read_text())
        for each in files
        if each.name not in ("keys.py", "option_checks.py", "ignored_options.py", "without_effect.py")
    )
    checks: dict[str, Any] = option_checks._CHECKS | (
        option_checks._POSTGRESQL_CHECKS if database == "postgresql" else option_checks._BINLOG_CHECKS
    )
    told = WITHOUT_EFFECT[database] | checks.keys()
    unread = {key.name for key in definition if not _is_read(key.name, code)}
    assert unread - told <= _READ_OTHERWISE[database]


@pytest.mark.parametrize("database", BASES)
def test_the_reference_says_of_each_option_whether_it_has_an_effect(database: str) -> None:
    definition, _ = BASES[database]
    said = {key.name for key in definition if key.doc.endswith("Accepted, but without effect here.")}
    assert said == WITHOUT_EFFECT[database].intersection(key.name for key in definition)
    assert not [key.name for key in definition if key.name not in said and "ffect" in key.doc]


_READ_OTHERWISE: dict[str, set[str]] = {
    "postgresql": {
        *(f"{kind}.{which}.list" for kind in ("schema", "message.prefix") for which in ("include", "exclude")),
        "table.exclude.list",
    },
    "mariadb": set(),
}
"""Options whose names are put together by the code that reads them."""

# As the documentation of Debezium 3 lists them: those of all connectors, and those of PostgreSQL, MariaDB, and MySQL alone.
_DOCUMENTED = """
    database.hostname database.port database.user database.password topic.prefix table.include.list table.exclude.list
    column.include.list column.exclude.list skip.messages.without.change time.precision.mode decimal.handling.mode
    tombstones.on.delete column.propagate.source.type datatype.propagate.source.type message.key.columns binary.handling.mode
    schema.name.adjustment.mode field.name.adjustment.mode converters post.processors snapshot.mode
    snapshot.mode.configuration.based.snapshot.data snapshot.mode.configuration.based.snapshot.schema
    snapshot.mode.configuration.based.start.stream snapshot.mode.configuration.based.snapshot.on.schema.error
    snapshot.mode.configuration.based.snapshot.on.data.error snapshot.mode.custom.name snapshot.locking.mode
    snapshot.locking.mode.custom.name snapshot.query.mode snapshot.query.mode.custom.name snapshot.include.collection.list
    snapshot.lock.timeout.ms snapshot.select.statement.overrides snapshot.tables.order.by.row.count
    event.processing.failure.handling.mode event.converting.failure.handling.mode max.batch.size max.queue.size
    max.queue.size.in.bytes poll.interval.ms database.initial.statements errors.max.retries heartbeat.interval.ms
    heartbeat.action.query snapshot.delay.ms streaming.delay.ms snapshot.fetch.size unavailable.value.placeholder
    provide.transaction.metadata retriable.restart.connector.wait.ms skipped.operations signal.data.collection
    signal.enabled.channels signal.poll.interval.ms signal.kafka.topic signal.kafka.groupId signal.kafka.bootstrap.servers
    signal.kafka.poll.timeout.ms signal.file notification.enabled.channels notification.sink.topic.name
    incremental.snapshot.chunk.size incremental.snapshot.watermarking.strategy incremental.snapshot.allow.schema.changes
    read.only topic.naming.strategy topic.delimiter topic.cache.size topic.heartbeat.prefix topic.transaction
    snapshot.max.threads snapshot.max.threads.multiplier custom.metric.tags database.query.timeout.ms extended.headers.enabled
    connection.validation.timeout.ms executor.shutdown.timeout.ms transaction.metadata.factory sourceinfo.struct.maker
    include.schema.comments guardrail.collections.max guardrail.collections.limit.action openlineage.integration.enabled
    query.fetch.size table.ignore.builtin internal.anything database.driver.property driver.property
"""
_DOCUMENTED_OF = {
    "postgresql": """
        plugin.name slot.name slot.drop.on.stop slot.failover publication.name replica.identity.autoset.values database.dbname
        schema.include.list schema.exclude.list hstore.handling.mode interval.handling.mode database.sslmode database.sslcert
        database.sslkey database.sslpassword database.sslrootcert database.sslfactory database.tcpKeepAlive
        publication.autocreate.mode publish.via.partition.root money.fraction.digits message.prefix.include.list
        message.prefix.exclude.list snapshot.isolation.mode include.unknown.datatypes status.update.interval.ms
        schema.refresh.mode slot.stream.params slot.max.retries slot.retry.delay.ms flush.lsn.source lsn.flush.mode
        lsn.flush.timeout.ms lsn.flush.timeout.action offset.mismatch.strategy xmin.fetch.interval.ms
        unavailable.value.placeholder.propagate include.schema.changes
    """,
    "mariadb": """
        bigint.unsigned.handling.mode connect.timeout.ms database.exclude.list database.include.list database.server.id
        database.server.id.offset event.deserialization.failure.handling.mode gtid.source.excludes gtid.source.includes
        gtid.source.filter.dml.events include.query inconsistent.schema.handling.mode connect.keep.alive
        connect.keep.alive.interval.ms database.ssl.keystore database.ssl.keystore.password database.ssl.mode
        database.ssl.truststore database.ssl.truststore.password enable.time.adjuster min.row.count.to.stream.results
        use.nongraceful.disconnect database.protocol database.jdbc.driver binlog.buffer.size source.struct.version
        schema.history.internal schema.history.internal.kafka.topic schema.history.internal.kafka.bootstrap.servers
        schema.history.internal.kafka.recovery.poll.interval.ms schema.history.internal.kafka.recovery.attempts
        schema.history.internal.kafka.query.timeout.ms schema.history.internal.kafka.create.timeout.ms
        schema.history.internal.skip.unparseable.ddl schema.history.internal.store.only.captured.tables.ddl
        schema.history.internal.store.only.captured.databases.ddl schema.history.internal.ddl.filter include.schema.changes
    """,
}
_READ_BY_PREFIX = """
    column.mask.with.3.chars column.mask.hash.SHA-256.with.salt.x column.mask.hash.v2.SHA-256.with.salt.x
    column.truncate.to.2.chars signal.consumer.security.protocol
"""
_OF_CONNECT = """
    name connector.class tasks.max key.converter value.converter.schemas.enable transforms transforms.a.type predicates
    errors.tolerance errors.retry.timeout errors.log.enable errors.deadletterqueue.topic.name topic.creation.default.partitions
    exactly.once.support transaction.boundary transaction.boundary.interval.ms offsets.storage.topic
    producer.override.linger.ms airflow.schedule spark.executor.memory sluiceway.task.isolation config.action.reload
"""


@pytest.mark.parametrize(
    ("database", "key"), [(each, key) for each in BASES for key in (_DOCUMENTED + _DOCUMENTED_OF[each]).split()]
)
def test_every_documented_option_is_supported_or_refused_or_warned_about(database: str, key: str) -> None:
    definition, base = BASES[database]
    told = ignored_options({**base, key: "unusual"}, definition, postgresql=database == "postgresql")
    read = key in definition and (key in told or key not in WITHOUT_EFFECT[database])
    assert read or key in told or key in errors(database, {key: "unusual"})


@pytest.mark.parametrize("database", BASES)
@pytest.mark.parametrize("key", (_READ_BY_PREFIX + _OF_CONNECT).split())
def test_options_that_something_reads_are_not_warned_about(database: str, key: str) -> None:
    definition, base = BASES[database]
    assert ignored_options({**base, key: "x"}, definition, postgresql=database == "postgresql") == []


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"snapshot.mod": "initial"}, ["snapshot.mod"]),
        ({"column.mask.with.chars": "a.b.c", "column.truncate.to.3.chars": "a.b.c"}, ["column.mask.with.chars"]),
        ({OVERRIDES: "a.t", f"{OVERRIDES}.a.t": "select 1", f"{OVERRIDES}.a.u": "select 2"}, [f"{OVERRIDES}.a.u"]),
        ({f"{OVERRIDES}.a.t": "select 1"}, [f"{OVERRIDES}.a.t"]),
        ({"signal.enabled.channels": "source,jmx"}, ["signal.enabled.channels=jmx"]),
        ({"notification.enabled.channels": "JMX, log"}, ["notification.enabled.channels=JMX"]),
        ({"converters": "slot", "slot.type": "x", "slot.more": "y"}, []),
        ({"schema.history.internal.producer.acks": "all"}, []),
        ({"gtid.source.filter.dml.events": "false"}, ["gtid.source.filter.dml.events"]),
        ({"gtid.source.filter.dml.events": "false", "gtid.source.includes": "a"}, []),
        ({"snapshot.locking.mode": "extended", "snapshot.lock.timeout.ms": "10000"}, ["snapshot.locking.mode"]),
        ({"database.ssl.truststore": "f", "database.ssl.mode": "required"}, ["database.ssl.truststore"]),
    ],
    ids=str,
)
def test_keys_and_values_without_effect_are_named(changes: dict[str, str], told: list[str]) -> None:
    assert ignored_options({**MARIADB, **changes}, DEFINITION, postgresql=False) == told


def _without_definitions(text: str) -> str:
    return re.sub(r"_OWN: list\[Entry\].*?\n\]\n", "", text, flags=re.DOTALL)


def _is_read(name: str, code: str) -> bool:
    short = name.removeprefix("schema.history.internal.")
    return any(text in code for text in (f'"{name}"', f'{short}"', f".{short}", f'"{name.split(".", 1)[-1]}"'))
