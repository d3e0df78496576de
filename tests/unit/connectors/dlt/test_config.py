"""The config of DltSource: what is wrong is told by its key, without dlt and without the user's module."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sluiceway.api import ConnectorTransactionBoundaries, ExactlyOnceSupport
from sluiceway.connectors.dlt import DltSourceConnector
from sluiceway.connectors.dlt.config import DltConfig
from sluiceway.errors import ConfigError, ConnectError

VALID = {"dlt.source": "shop.events"}
PARTITION = {"source": "shop", "resource": "orders"}


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("dlt.source", "events", "must be module.function"),
        ("dlt.source", "shop.events()", "must be module.function"),
        ("dlt.source", "", "must be module.function"),
        ("dlt.args", "{", "must be a JSON object of the function's arguments: Expecting"),
        ("dlt.args", "[1]", "must be a JSON object"),
        ("dlt.args", '{"token": "dlt.secret.tokn"}', "names the key dlt.secret.tokn, which is not set"),
        ("dlt.commit", "always", "must be one of"),
        ("dlt.nested", "xml", "must be one of"),
        ("time.precision.mode", "nanoseconds", "must be one of"),
        ("dlt.run.interval.ms", "-1", "at least 0"),
        ("topic.prefix", "a/b", "may have letters"),
        ("dlt.secret.a.b.c", "x", "is below another key"),
        ("dlt.secret.", "x", "must name a value"),
        ("dlt.secret.a..d", "x", "must name a value"),
        ("dlt.secret.a.b", "x", "is set twice"),
    ],
)
def test_what_is_wrong_is_told_by_its_key(key: str, value: str, why: str) -> None:
    config = {**VALID, "dlt.config.a.b": "s3cret", key: value}
    errors = {name: each.errors for name, each in DltSourceConnector.check(config).items() if each.errors}
    assert list(errors) == [key]
    assert why in errors[key][0].replace("String must be one of", "must be one of")
    assert "s3cret" not in errors[key][0]
    with pytest.raises(ConfigError) as caught:
        DltSourceConnector().start(config)
    assert caught.value.name == key


def test_values_for_dlt_are_nested_and_arguments_may_name_them() -> None:
    made = DltConfig.of(
        {
            **VALID,
            "dlt.args": '{"auth": [{"token": "dlt.secret.token"}], "place": "dlt.config.sources.place", "rows": 3}',
            "dlt.secret.token": 'a"b\\',
            "dlt.config.sources.place": "here",
        }
    )
    assert made.args == {"auth": [{"token": 'a"b\\'}], "place": "here", "rows": 3}
    assert made.values == {"token": 'a"b\\', "sources": {"place": "here"}}
    assert 'a"b' not in repr(made)


def test_a_check_imports_neither_dlt_nor_arrow_nor_the_users_module() -> None:
    code = (
        "import sys\n"
        "from sluiceway.connectors.dlt import DltSourceConnector\n"
        "DltSourceConnector.check({'dlt.source': 'this.that'})\n"
        "assert not {'dlt', 'pyarrow', 'this'} & set(sys.modules), sorted(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_exactly_once_needs_the_tasks_transactions() -> None:
    connector = DltSourceConnector()
    assert connector.exactly_once_support(VALID) is ExactlyOnceSupport.UNSUPPORTED
    assert connector.exactly_once_support({**VALID, "transaction.boundary": "connector"}) is ExactlyOnceSupport.SUPPORTED
    assert connector.can_define_transaction_boundaries(VALID) is ConnectorTransactionBoundaries.SUPPORTED


def test_there_is_one_task() -> None:
    connector = DltSourceConnector()
    connector.start(VALID)
    assert connector.task_configs(7) == [VALID]


def test_offsets_can_be_edited() -> None:
    assert DltSourceConnector().alter_offsets(VALID, [(PARTITION, None), (PARTITION, {"state": '{"a": 1}', "schema": "{}"})])
    assert DltSourceConnector().alter_offsets(VALID, [(PARTITION, {"state": "{}"})])


@pytest.mark.parametrize(
    ("partition", "offset", "why"),
    [
        ({"resource": "orders"}, {"state": "{}"}, "A partition is"),
        (PARTITION, {}, "An offset is"),
        (PARTITION, {"position": "{}"}, "An offset is"),
        (PARTITION, {"state": "{"}, "The offset's state is no JSON"),
        (PARTITION, {"state": "[]"}, "must be a JSON object"),
        (PARTITION, {"state": "{}", "schema": 1}, "must be a JSON object"),
    ],
)
def test_what_is_no_offset_is_refused(partition: dict[str, str], offset: dict[str, object], why: str) -> None:
    with pytest.raises(ConnectError, match=why):
        DltSourceConnector().alter_offsets(VALID, [(partition, offset)])
