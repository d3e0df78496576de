"""XML: the values of elements, and records in files of any content, well-formed or not."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import escape, quoteattr

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sluiceway.connectors.folder.formats import Records
from sluiceway.connectors.folder.xml_format import XmlFormat
from sluiceway.errors import ConnectError
from support.folder_formats import CUTS, check_columns, check_cuts, values

Made = tuple[str, Any]
TEXTS = st.text(st.sampled_from("ab <>&\"'é"), max_size=5)
AROUND = st.lists(
    st.sampled_from(
        [
            "\n",
            "text",
            "<!-- <order> -->",
            "<![CDATA[<order>]]>",
            "<?pi <order>?>",
            '<b x=">"/>',
            "<b>1</b>",
            "<orders/>",
            "<orderx/>",
        ]
    ),
    max_size=2,
).map("".join)
ATTRIBUTES = st.dictionaries(st.sampled_from(["id", "p:x"]), TEXTS, max_size=2)
CHILDREN = st.sampled_from(["order", "b", "p:order", "p:b"])


def begun(text: str | bytes, record: str = "order") -> tuple[bytes, Records]:
    data = text.encode() if isinstance(text, str) else text
    found = XmlFormat(record).begin(data, final=True)
    assert found is not None
    return data[found[0] :], found[1]


def made(name: str, attributes: dict[str, str], text: str, children: list[tuple[str, Made]], *, is_record: bool = False) -> Made:
    """Return the text and the value of an element, whose children are after its text."""
    found: dict[str, Any] = {f"@{key}": value for key, value in attributes.items()}
    groups: dict[str, list[Any]] = {}
    for key, (_, value) in children:
        groups.setdefault(key, []).append(value)
    found |= {key: group[0] if len(group) == 1 else group for key, group in groups.items()}
    content = text.strip()
    if content and (found or is_record):
        found["#text"] = content
    start = f"<{name}" + "".join(f" {key}={quoteattr(value)}" for key, value in attributes.items())
    inner = escape(text) + "".join(each for _, (each, _) in children)
    return f"{start}>{inner}</{name} >" if inner else f"{start} />", found if found or is_record else content or None


def element(
    name: str, children: st.SearchStrategy[list[tuple[str, Made]]], *, is_record: bool = False
) -> st.SearchStrategy[Made]:
    return st.builds(
        lambda attributes, text, inner: made(name, attributes, text, inner, is_record=is_record), ATTRIBUTES, TEXTS, children
    )


def child(children: st.SearchStrategy[list[tuple[str, Made]]]) -> st.SearchStrategy[tuple[str, Made]]:
    return CHILDREN.flatmap(lambda name: st.tuples(st.just(name), element(name, children)))


TREES = st.lists(child(st.lists(child(st.just([])), max_size=2)), max_size=3)
RECORDS = st.sampled_from(["order", "p:order"]).flatmap(lambda name: element(name, TREES, is_record=True))


@given(st.lists(st.tuples(AROUND, RECORDS), max_size=4), AROUND, AROUND, CUTS, st.integers(1, 5))
@example([], "", "<b>1</b>", [30, 40, 50], 1)
@example([], "<!-- </orders> -->", "", [18, 30], 1)
def test_a_file_that_a_program_wrote(parts: list[tuple[str, Made]], before: str, after: str, cuts: list[int], most: int) -> None:
    prolog = '<?xml version="1.0"?>\n<!-- <order> -->\n<!DOCTYPE orders SYSTEM "orders.dtd">\n<orders xmlns:p="urn:p">'
    text = before + "".join(around + written for around, (written, _) in parts) + after + "</orders>\n<!-- <order> -->\n"
    data, records = begun(prolog + text)
    assert data.startswith(b"<orders xmlns")
    assert values(records.rows(data)) == [(value, False) for _, (_, value) in parts]
    assert not records.unfinished(data)
    check_cuts(records, data, cuts)
    check_cuts(records, data, [22 + each for each in cuts])
    assert check_columns(records, data, most) is bool(parts)


MARKUP = [
    "<order>",
    "</order>",
    "<order",
    "<order a='",
    "'",
    "/>",
    ">",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<?",
    "?>",
    '"',
    "a",
    " ",
    "<b>",
    "</b",
]


@settings(max_examples=1000)
@given(
    st.lists(st.sampled_from([*MARKUP, "<", "</orders>", "<orders", "!"]), max_size=14), st.booleans(), CUTS, st.integers(1, 5)
)
@example(["<order a='", ">", "'", "/>"], True, [19], 1)
@example(["<order"], False, [8], 1)
@example(["<b", "</orders>"], True, [13], 1)
@example(["<order>", "</order>", "</orders>"], False, [17, 22], 1)
def test_what_is_not_well_formed(parts: list[str], is_ended: bool, cuts: list[int], most: int) -> None:
    data, records = begun("<orders>" + "".join(parts) + "</orders>" * is_ended)
    check_cuts(records, data, cuts)
    check_columns(records, data, most)
    assert records.unfinished(data) or b"</orders" in data or b"<orders" in data[1:]


def test_the_value_of_an_element() -> None:
    text = """<o:orders xmlns:o="urn:o" xmlns:p="urn:p"><o:order id="1" p:x="a&amp;b">
      <p:item>one</p:item> text <p:item n="2">two</p:item><p:item/><![CDATA[<b>]]> &#233;<!-- no -->
      <address><street>S</street></address></o:order></o:orders>"""
    expected = {
        "@id": "1",
        "@p:x": "a&b",
        "p:item": ["one", {"@n": "2", "#text": "two"}, None],
        "address": {"street": "S"},
        "#text": "text <b> é",
    }
    for record in ("order", "o:order"):
        data, records = begun(text, record)
        assert values(records.rows(data)) == [(expected, False)]
    assert values(begun(text, "p:order")[1].rows(text.encode())) == []


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        ("<order/><order></order>", [{}, {}]),
        ("<order>1</order>", [{"#text": "1"}]),
        ("<order><order>1</order></order><order/>", [{"order": "1"}, {}]),
        ("<order><b></order><order/>", [None, {}]),
        ('<order a="1></order><order/>', [None, {}]),
        ("<order a=1></order><order/>", [None, {}]),
        ("<order <b></order><order/>", [None, {}]),
        ("<order<b></order><order/>", [None, {}]),
        ("<order><x:order></order><order/>", [None, {}]),
        ("<order>&unknown;</order><order/>", [None, {}]),
        ("</order><order/>", [{}]),
        ("<a><b><order/></b></a><c><order/></c>", [{}, {}]),
        ("<orderx/><xorder/><x:order/>", [{}]),
        ('<order a=">" b=\'"\'/>', [{"@a": ">", "@b": '"'}]),
        ("<order>", [None]),
        ("<order/><!-- ", [{}, None]),
    ],
)
def test_records(inner: str, expected: list[Any]) -> None:
    data, records = begun(f"<orders>{inner}</orders>")
    assert values(records.rows(data)) == [(each, each is None) for each in expected]


def test_elements_that_are_too_deep() -> None:
    for depth, is_good in ((249, True), (250, False)):
        data, records = begun("<orders><order>" + "<b>" * depth + "</b>" * depth + "</order></orders>")
        assert [not row.reason for row in records.rows(data)] == [is_good]


def test_the_root_may_be_the_record() -> None:
    data, records = begun("<order><order>1</order></order>\n")
    assert values(records.rows(data)) == [({"order": "1"}, False)]
    check_cuts(records, data, [5, 10, 25, 31])
    assert not records.unfinished(b"\n")


@pytest.mark.parametrize(
    "text",
    ["<orders><order/>", "<orders><order/></order>", "<orders>\n", "<orders><order/></orders2>", "<orders><orders/><order/>"],
)
def test_a_file_that_ends_too_early(text: str) -> None:
    data, records = begun(text)
    assert "before the end of its root <orders>" in records.unfinished(data)


@pytest.mark.parametrize("text", ["<orders/>", "<orders a='>' />\n<!-- b -->", "<orders></orders\n>"])
def test_a_file_without_records(text: str) -> None:
    data, records = begun(text)
    assert not records.unfinished(data)
    for length in range(1, len(data)):
        check_cuts(records, data, [length])
    assert values(records.rows(data)) == []


def test_what_is_around_records_is_passed() -> None:
    """So that no more than a chunk of it is held at a time."""
    data, records = begun("<orders>" + "<b>1</b>" * 10 + "<orders></orders>" * 10 + "<b>1</b><b")
    assert records.complete(data, final=False) == len(data) - 2


@pytest.mark.parametrize("encoding", ["iso-8859-1", "windows-1252", "utf-8", "US-ASCII"])
def test_a_file_in_the_encoding_that_it_declares(encoding: str) -> None:
    text = f'<?xml version="1.0" encoding="{encoding}"?>\n<Größen><größe>ä€</größe><größe/></Größen>'
    if encoding == "iso-8859-1":
        text = text.replace("€", "")
    if encoding == "US-ASCII":
        text = text.replace("ö", "o").replace("ß", "s").replace("ä€", "a")
    name = "grose" if encoding == "US-ASCII" else "größe"
    data, records = begun(text.encode(encoding), name)
    expected = {"iso-8859-1": "ä", "US-ASCII": "a"}.get(encoding, "ä€")
    assert values(records.rows(data)) == [({"#text": expected}, False), ({}, False)]
    assert not records.unfinished(data)


def test_bytes_that_are_not_of_the_encoding() -> None:
    data, records = begun(b"\xef\xbb\xbf<orders><order>\xff</order><order/></orders>")
    assert data.startswith(b"<orders>")
    assert values(records.rows(data)) == [(None, True), ({}, False)]


def test_a_start_that_is_not_there_yet() -> None:
    data = b'<?xml version="1.0"?>\n<!-- <order/> -->\n<orders a="1">'
    for length in range(len(data)):
        assert XmlFormat("order").begin(data[:length], final=False) is None
    assert XmlFormat("order").begin(data, final=False) is not None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no XML"),
        (b'{"a": 1}', "no XML"),
        (b"<orders", "no XML"),
        ("<orders/>".encode("utf-16"), "UTF-16"),
        ("<orders/>".encode("utf-16-be"), "UTF-16"),
        (b'<?xml version="1.0" encoding="gbk"?><orders/>', "multi-byte"),
        (b'<?xml version="1.0" encoding="none"?><orders/>', "unknown encoding"),
        (b'<!DOCTYPE orders [<!ENTITY a "x"><!ENTITY b "&a;&a;">]><orders/>', "has the entity a, and entities are not expanded"),
        (b'<!DOCTYPE orders [<!ENTITY % a SYSTEM "/etc/passwd">]><orders/>', "has the entity a"),
        (b'<!DOCTYPE orders [<!ENTITY a SYSTEM "/etc/passwd">]><orders/>', "has the entity a"),
    ],
)
def test_a_file_that_is_not_read(data: bytes, message: str) -> None:
    with pytest.raises(ConnectError, match=message):
        XmlFormat("order").begin(data, final=True)
