"""Tests of DAG ids."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.errors import ConfigError
from sluiceway.provider.dag_bundle.dag_ids import connector_name, dag_id, is_stub_file, stub_file

_AIRFLOW_KEY = re.compile(r"[\w.-]+")


@pytest.mark.parametrize("name", ["logs", "demo-source", "a.b_c-9", "x_x", "under_score"])
def test_names_of_allowed_characters_are_unchanged(name: str) -> None:
    assert dag_id(name) == name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("two words", "two_x20words"),
        ("a/b", "a_x2Fb"),
        ("größe", "gr_xC3_xB6_xC3_x9Fe"),
        ("a_x20b", "a_x5Fx20b"),
        ("a..b", "a._x2Eb"),
    ],
)
def test_other_characters_are_escaped_byte_by_byte(name: str, expected: str) -> None:
    assert dag_id(name) == expected


@given(st.text(st.characters(min_codepoint=32, exclude_categories=["Cs"]), min_size=1, max_size=15))
def test_every_name_is_decoded_from_its_dag_id(name: str) -> None:
    encoded = dag_id(name)
    assert connector_name(encoded) == name
    assert _AIRFLOW_KEY.fullmatch(encoded)
    assert ".." not in encoded


@given(st.text("_x2F .", min_size=1, max_size=12))
def test_names_that_contain_escapes_are_decoded(name: str) -> None:
    assert connector_name(dag_id(name)) == name


def test_a_name_that_is_too_long_is_rejected_with_both_lengths() -> None:
    assert dag_id("a" * 250) == "a" * 250
    with pytest.raises(ConfigError, match=r"250 characters .* needs 251"):
        dag_id("a" * 251)


def test_a_stub_cannot_be_imported_as_a_module_of_the_connectors_name() -> None:
    assert not stub_file("json").removesuffix(".py").isidentifier()
    assert is_stub_file(stub_file("json"))
    assert not is_stub_file("json.py")
