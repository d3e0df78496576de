"""The user's function is found and called, or an error names the key of the config."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from sluiceway.connectors.dlt.config import DltConfig
from sluiceway.connectors.dlt.loading import hidden, secrets_of, sources_of
from sluiceway.errors import ConfigError

MODULE = """
import dlt

@dlt.source(name="listed")
def listed():
    return [dlt.resource([{"id": 1}], name="one"), dlt.resource([{"id": 2}], name="two", selected=False)]

@dlt.resource(name="alone")
def alone(rows=1):
    yield [{"id": row} for row in range(rows)]

def several():
    return [listed(), alone(), dlt.resource([{"id": 3}], name="three")]

def twice():
    return [listed(), listed()]

def none_selected():
    return dlt.resource([{"id": 3}], name="three", selected=False)

def plain():
    yield {"id": 1}

@dlt.source(name="needing")
def needing(token: str = dlt.secrets.value, rows: int = dlt.config.value):
    return dlt.resource([{"token": token, "rows": rows}], name="told")

ready = dlt.resource([{"id": 4}], name="ready")
number = 7

def failing():
    raise OSError("the disk is full")
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"dlt_module_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    (tmp_path / f"{name}_bad.py").write_text("import not_there_at_all")
    (tmp_path / f"{name}_wrong.py").write_text("1 +")
    monkeypatch.syspath_prepend(tmp_path)
    return name


def made(path: str, args: object = None, **more: str) -> list[tuple[str, list[str]]]:
    config = {
        "dlt.source": path,
        "dlt.args": json.dumps(args or {}),
        **{key.replace("_", "."): each for key, each in more.items()},
    }
    return [(each.name, list(each.resources.selected)) for each in sources_of(DltConfig.of(config))]


def test_sources_resources_and_lists_are_read(module: str) -> None:
    assert made(f"{module}.listed") == [("listed", ["one"])]
    assert made(f"{module}.alone", {"rows": 2}) == [("alone", ["alone"])]
    assert made(f"{module}.ready") == [("ready", ["ready"])]
    assert made(f"{module}.several") == [("listed", ["one"]), ("several", ["alone", "three"])]


def test_resources_are_chosen(module: str) -> None:
    assert made(f"{module}.listed", dlt_resources="two") == [("listed", ["two"])]
    assert made(f"{module}.several", dlt_resources="three") == [("several", ["three"])]


def test_dlts_own_values_come_from_the_config(module: str) -> None:
    [source] = sources_of(DltConfig.of({"dlt.source": f"{module}.needing", "dlt.secret.token": "t", "dlt.config.rows": "5"}))
    assert list(source) == [{"token": "t", "rows": 5}]


@pytest.mark.parametrize(
    ("path", "more", "key", "why"),
    [
        ("no.such.module", {}, "dlt.source", "there is no module no"),
        ("{}.events", {}, "dlt.source", "does not have; it has alone, failing, listed"),
        ("{}_bad.events", {}, "dlt.source", "the module not_there_at_all is not installed"),
        ("{}_wrong.events", {}, "dlt.source", "cannot be imported: SyntaxError"),
        ("{}.number", {}, "dlt.source", "is no function: it is int"),
        ("{}.plain", {}, "dlt.source", "returns a generator instead of a dlt source"),
        ("{}.twice", {}, "dlt.source", "two sources with the name listed"),
        ("{}.none_selected", {}, "dlt.resources", "must be set"),
        ("{}.listed", {"dlt_resources": "one,three"}, "dlt.resources", "It has one, two"),
        ("{}.alone", {"dlt_args": '{"row": 1}'}, "dlt.args", "has row, which {}.alone does not take. It takes rows"),
        (
            "{}.needing",
            {},
            "dlt.source",
            "has no value for token, rows. Set it in dlt.args, or as dlt.secret.token, dlt.secret.rows",
        ),
    ],
)
def test_what_is_wrong_names_its_key(module: str, path: str, more: dict[str, str], key: str, why: str) -> None:
    config = {"dlt.source": path.format(module), **{name.replace("_", "."): each for name, each in more.items()}}
    with pytest.raises(ConfigError) as caught:
        sources_of(DltConfig.of(config))
    assert caught.value.name == key
    assert why.replace("{}", module) in str(caught.value)


def test_what_the_users_function_raises_is_raised(module: str) -> None:
    with pytest.raises(OSError, match="the disk is full"):
        made(f"{module}.failing")


def test_the_guides_example_is_a_source() -> None:
    page = Path(__file__).parents[4] / "docs" / "how-to" / "connect-dlt.md"
    example = page.read_text(encoding="utf-8").partition("```json\n")[2].partition("\n```")[0]
    config = DltConfig.of({**json.loads(example)["config"], "dlt.secret.token": "t"})
    [source] = sources_of(config)
    assert (source.name, list(source.resources)) == ("tracker", ["issues"])


def test_secrets_are_hidden() -> None:
    assert hidden("a login hunter2/hunter22 of x", ["hunter2", "hunter22", "x"]) == "a login [hidden]/[hidden] of x"
    assert "s3cret" not in hidden("cannot reach postgresql://ada:s3cret@db/shop", [])
    args = {
        "client": {"base_url": "https://x", "auth": {"token": "t1", "api_key": ["t2"]}},
        "credentials": {"user": "u"},
        "rows": 1,
    }
    assert secrets_of(args) == ["t1", "t2", "u"]


def test_this_process_has_not_imported_airflow_for_dlt(module: str) -> None:
    before: Any = {name for name in sys.modules if name.startswith("airflow")}
    made(f"{module}.listed")
    assert {name for name in sys.modules if name.startswith("airflow")} == before
