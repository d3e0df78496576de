from __future__ import annotations

from sluiceway.transforms.debezium.names import field_name_adjuster, schema_name_adjuster


def test_names_for_avro() -> None:
    avro, unicode, none = map(schema_name_adjuster, ("avro", "avro_unicode", "none"))
    assert [avro(name) for name in ("a.b_c", "9a-é", "😀", "")] == ["a.b_c", "_9a__", "__", ""]
    assert [unicode(name) for name in ("a.b_c", "-é", "9😀")] == ["a.b_u005fc", "_u002d_u00e9", "_u0039_ud83d_ude00"]
    assert none("9-é") == "9-é"


def test_dots_are_not_allowed_in_names_of_fields() -> None:
    assert (field_name_adjuster("avro")("a.b"), field_name_adjuster("avro_unicode")("a.b")) == ("a_b", "a_u002eb")
