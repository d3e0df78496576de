"""Random tables whose keys have any types, for tests of snapshots that read tables in the order of their keys."""

from __future__ import annotations

import random
import re
import struct
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

Maker = Callable[[random.Random], str]
"""Returns a random value as an SQL literal."""

_LETTERS = "abcABCzZ09 ._-%'\\äßŻé€ñ😀\t\n\u0301I\u0131\u0130\u200d\U0001d49c"


def _text(quote: Callable[[str], str], letters: str = _LETTERS, most: int = 8) -> Maker:
    return lambda rng: quote("".join(rng.choice(letters) for _ in range(rng.randint(0, most))))


def _integer(bits: int, *, signed: bool = True) -> Maker:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return lambda rng: str(rng.choice([low, high, low + 1, high - 1, 0, 1, rng.randint(low, high)]))


def _decimal(digits: int, scale: int) -> Maker:
    def make(rng: random.Random) -> str:
        number = rng.choice([0, 1, 10**digits - 1, rng.randrange(10**digits)]) * rng.choice([1, -1])
        text = f"{abs(number):0{scale + 1}}"
        return ("-" if number < 0 else "") + (f"{text[:-scale]}.{text[-scale:]}" if scale else text)

    return make


def _double(rng: random.Random) -> str:
    extremes = ["0", "-0.0", "0.1", "1e0", "1.7976931348623157e308", "-1.7976931348623157e308", "5e-324"]
    return rng.choice([*extremes, repr(rng.uniform(-1e9, 1e9))])


def _single(rng: random.Random) -> str:
    near = struct.unpack("f", struct.pack("I", 0x3F9E0651 + rng.randint(0, 40)))[0]  # values with the same six digits
    return rng.choice(["0", "-3.4e38", "3.4e38", "1e-38", "16777217", repr(near)])


def _date(rng: random.Random) -> str:
    return f"{rng.choice([1000, 1582, 1900, 1969, 1970, 2024, 9999]):04}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"


def _clock(rng: random.Random) -> str:
    return f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}.{rng.choice([0, 1, 500000, 999999]):06}"


def _quoted(make: Maker, cast: str = "") -> Maker:
    return lambda rng: f"'{make(rng)}'{cast}"


def _one_of(*literals: str) -> Maker:
    return lambda rng: rng.choice(literals)


def _random_uuid(rng: random.Random) -> str:
    return str(uuid.UUID(int=rng.getrandbits(128), version=rng.choice([1, 4])))


def _postgres_quote(text: str) -> str:
    return "E'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _mysql_quote(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


_PG_TEXT = _text(_postgres_quote)
_INFINITE = ["'NaN'", "'Infinity'", "'-Infinity'"]

POSTGRES_TYPES: dict[str, Maker] = {
    "smallint": _integer(16),
    "int": _integer(32),
    "bigint": _integer(64),
    "oid": _integer(32, signed=False),
    "oidvector": lambda rng: f"'{rng.randint(0, 3)} {rng.randint(0, 99)}'",
    "numeric": lambda rng: rng.choice([*_INFINITE, _decimal(60, 20)(rng), "1e50", "0.10"]),
    "numeric(38,5)": _decimal(38, 5),
    "numeric(5,-2)": _decimal(6, 0),
    "real": lambda rng: rng.choice([*_INFINITE, _single(rng)]),
    "double precision": lambda rng: rng.choice([*_INFINITE, f"'{_double(rng)}'"]),
    "boolean": _one_of("true", "false"),
    "char(6)": _text(_postgres_quote, most=6),
    "bpchar": _PG_TEXT,
    "varchar(9)": _PG_TEXT,
    "text": _PG_TEXT,
    "char(4) collate same_letters": _text(_postgres_quote, most=4),
    'text collate "C"': _PG_TEXT,
    'text collate "und-x-icu"': _PG_TEXT,
    "text collate same_letters": _PG_TEXT,
    '"char"': _one_of("'a'", "'b'", "''", "'~'"),
    "name": _PG_TEXT,
    "bytea": lambda rng: f"'\\x{rng.randbytes(rng.randint(0, 5)).hex()}'",
    "bit(5)": lambda rng: f"B'{rng.getrandbits(5):05b}'",
    "bit varying": lambda rng: f"B'{rng.getrandbits(rng.randint(1, 9)):b}'",
    "date": lambda rng: rng.choice(["'infinity'", "'-infinity'", "'0044-03-15 BC'", f"'{_date(rng)}'"]),
    "time": _quoted(_clock),
    "time(2)": _quoted(_clock),
    "timetz": lambda rng: f"'{_clock(rng)}{rng.choice(['+00', '+05:30', '-11'])}'",
    "timestamp": lambda rng: rng.choice(["'infinity'", "'0044-03-15 01:02:03 BC'", f"'{_date(rng)} {_clock(rng)}'"]),
    "timestamp(0)": lambda rng: f"'{_date(rng)} {_clock(rng)}'",
    "timestamptz": lambda rng: rng.choice(["'-infinity'", f"'{_date(rng)} {_clock(rng)}+02'"]),
    "interval(0)": _one_of("'1 mon 0.4 s'", "'1 mon 0.6 s'", "'30 days'"),
    "interval": _one_of("'1 mon'", "'30 days'", "'-1 year 2 days'", "'0'", "'12345678 hours 0.000001 s'"),
    "uuid": _quoted(_random_uuid),
    "inet": _one_of("'1.2.3.4'", "'1.2.3.4/24'", "'::1'", "'2001:db8::/32'", "'200.0.0.1'", "'9.0.0.1'"),
    "cidr": _one_of("'10.0.0.0/8'", "'10.0.0.0/16'", "'2001:db8::/32'", "'9.0.0.0/8'"),
    "macaddr": lambda rng: f"'08:00:2b:01:02:{rng.getrandbits(8):02x}'",
    "macaddr8": lambda rng: f"'08:00:2b:01:02:03:04:{rng.getrandbits(8):02x}'",
    "money": lambda rng: f"'{rng.choice(['-92233720368547758.08', '92233720368547758.07', '0.10', '5', '1234.5'])}'",
    "mood": _one_of("'sad'", "'ok'", "'happy'", "'It''s \\ ok'"),
    "price": _decimal(7, 2),
    "code": _PG_TEXT,
    "int[]": lambda rng: f"'{{{rng.randint(-9, 9)},{rng.randint(0, 99)}}}'",
    "text[]": _one_of("'{}'", "'{a,\"b,c\"}'", "'{NULL,a}'", "E'{\"a\\\\\\\\b\"}'"),
    "double precision[]": lambda rng: f"'{{{rng.choice(['NaN', '-0', '0', '1e-320', '0.1'])}}}'",
    "pair[]": lambda rng: f"'{{\"({rng.randint(0, 3)},a)\"}}'",
    "ints": lambda rng: f"'{{{rng.randint(-9, 9)},NULL}}'",
    "numrange": lambda rng: f"'[{rng.choice(['', '-1.5', '0'])},{rng.choice(['', '1', '1.0'])}]'",
    "tstzrange": lambda rng: f"'[{_date(rng)} 01:02:03+02,{rng.choice(['infinity', ''])})'",
    "int4range": lambda rng: f"'[{rng.randint(-5, 5)},{rng.choice(['', '9'])})'",
    "int4multirange": lambda rng: f"'{{[{rng.randint(-9, 0)},{rng.randint(1, 9)})}}'",
    "jsonb": lambda rng: rng.choice(["'{}'", "'[1, 2]'", "'\"a\"'", f"'{{\"a\": {rng.randint(0, 9)}}}'", "'null'"]),
    "tsvector": _one_of("'a b'", "'a:1 c:2'", "''", "'b'"),
    "pair": lambda rng: f"'({rng.randint(0, 3)},\"a, {rng.randint(0, 9)}\")'",
    "tsquery": _one_of("'a & b'", "'!a'", "'a <-> b'", "'b'"),
    "pg_lsn": lambda rng: f"'{rng.getrandbits(16):X}/{rng.getrandbits(32):X}'",
    "xid8": lambda rng: f"'{rng.getrandbits(60)}'",
    "regtype": _one_of("'int'", "'text'", "'date'", "'pg_class'", "'money'"),
    "elsewhere.citext": _PG_TEXT,
    "elsewhere.citext[]": _one_of("'{a,B}'", "'{A,b}'", "'{}'", "'{b}'"),
    "elsewhere.ltree": _one_of("'a'", "'a.b'", "'B'", "'a.B.c'", "''"),
    "elsewhere.hstore": _one_of("'a=>1'", "'b=>NULL'", "''", "'a=>2, c=>\"x y\"'"),
}
"""PostgreSQL's types that a unique index can have. The types ``elsewhere`` are in a schema that is not in the search path."""

POSTGRES_SETUP = (
    "create schema elsewhere",
    "create collation same_letters (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
    "create type mood as enum ('sad', 'happy', 'ok', 'It''s \\ ok')",
    "create domain amount as numeric(9,2)",
    "create domain price as amount check (value > -1e9) default 5",
    'create domain code as text collate "C"',
    "create type pair as (x int, y text)",
    "create domain ints as int[]",
)

_MY_TEXT = _text(_mysql_quote, _LETTERS + "\0")
_MY_LATIN = _text(_mysql_quote, "abcABCzZ 09._-%'\\äßé")
_MEMBERS = [f"m{number}" for number in range(64)]


def _members(rng: random.Random) -> str:
    return f"'{','.join(rng.sample(_MEMBERS, rng.randint(0, 3)) + rng.choice([[], ['m63'], ['m0', 'm63']]))}'"


_BINLOG_TYPES: dict[str, Maker] = {
    "tinyint": _integer(8),
    "bool": _one_of("true", "false"),
    "smallint unsigned": _integer(16, signed=False),
    "mediumint": _integer(24),
    "int": _integer(32),
    "int unsigned": _integer(32, signed=False),
    "int(9) unsigned zerofill": _integer(32, signed=False),
    "bigint": _integer(64),
    "bigint unsigned": _integer(64, signed=False),
    "decimal(65,30)": _decimal(65, 30),
    "decimal(9,3) zerofill": lambda rng: _decimal(9, 3)(rng).lstrip("-"),
    "decimal(9,0) unsigned": lambda rng: _decimal(9, 0)(rng).lstrip("-"),
    "float": _single,
    "float unsigned zerofill": lambda rng: _single(rng).lstrip("-"),
    "float(9,3)": _decimal(9, 3),
    "float(7,0) unsigned": lambda rng: _decimal(7, 0)(rng).lstrip("-"),
    "float(30,10)": _decimal(30, 10),
    "double": _double,
    "double(9,3)": _decimal(9, 3),
    "double(20,3)": _decimal(20, 3),
    "bit(1)": _one_of("0", "1"),
    "bit(24)": lambda rng: str(rng.getrandbits(24)),
    "bit(64)": _integer(64, signed=False),
    "year": _one_of("0", "1901", "1969", "1970", "2000", "2024", "2155"),
    "date": lambda rng: rng.choice(["'0000-00-00'", "'2024-00-00'", "'2024-02-31'", f"'{_date(rng)}'"]),
    "time": _one_of("'-838:59:59'", "'838:59:59'", "'00:00:00'", "'-00:00:01'", "'12:34:56'"),
    "time(6)": _one_of("'-838:59:59'", "'838:59:59'", "'-00:00:00.000001'", "'00:00:00.000001'", "'9:00:00.5'"),
    "datetime": lambda rng: rng.choice(["'0000-00-00 00:00:00'", "'2023-11-31 00:00:01'", f"'{_date(rng)} 01:02:03'"]),
    "datetime(6)": lambda rng: f"'{_date(rng)} {_clock(rng)}'",
    "timestamp": _one_of("'0000-00-00 00:00:00'", "'1970-01-01 00:00:01'", "'2024-03-31 02:30:00'", "'2038-01-19 03:14:07'"),
    "timestamp(3)": _one_of("'2024-10-27 00:30:00.5'", "'2024-10-27 01:30:00.50'", "'2024-10-27 02:30:00.499'"),
    "timestamp(6)": lambda rng: f"'2024-02-03 {_clock(rng)}'",
    "char(6)": _text(_mysql_quote, most=6),
    "varchar(20)": _MY_TEXT,
    "varchar(20) character set latin1 collate latin1_german1_ci": _MY_LATIN,
    "varchar(20) character set latin1 collate latin1_bin": _MY_LATIN,
    "varchar(20) collate utf8mb4_bin": _MY_TEXT,
    "varchar(20) collate utf8mb4_unicode_ci": _MY_TEXT,
    "varchar(20) character set utf16": _MY_TEXT,
    "varchar(20) character set utf32 collate utf32_bin": _MY_TEXT,
    "varchar(20) character set ucs2": _MY_LATIN,
    "varchar(20) character set utf8mb3": _MY_LATIN,
    "varchar(20) character set gbk": _text(_mysql_quote, "abcABCzZ 09._-%'\\"),
    "nchar(5)": _text(_mysql_quote, "abcABC z\0é", most=5),
    "text": _MY_TEXT,
    "tinyblob": lambda rng: f"x'{rng.randbytes(rng.randint(0, 4)).hex()}'",
    "varchar(20) character set cp1250": _text(_mysql_quote, "abcABCzZ 09._-%'\\äßŻ"),
    "binary(4)": lambda rng: f"x'{rng.randbytes(rng.randint(0, 4)).hex()}'",
    "varbinary(9)": lambda rng: f"x'{rng.randbytes(rng.randint(0, 4)).hex()}'",
    "enum('pending','active','closed','It''s','2','1')": lambda rng: str(rng.randint(0, 6)),
    "enum('z','a') character set latin1": lambda rng: str(rng.randint(0, 2)),
    f"enum({','.join(repr(f'l{number}') for number in range(300))})": lambda rng: str(rng.choice([0, 1, 256, 257, 300])),
    "enum('É','é','e ','E') collate utf8mb4_bin": lambda rng: str(rng.randint(0, 4)),
    "set('r','g','b')": lambda rng: str(rng.randint(0, 7)),
    f"set({','.join(repr(each) for each in _MEMBERS)})": _members,
}
"""The types that a primary key of MariaDB and MySQL can have, some by a prefix."""

MYSQL_TYPES: dict[str, Maker] = {
    **_BINLOG_TYPES,
    "varchar(20) collate utf8mb4_0900_as_cs": _MY_TEXT,
    "varchar(20) collate utf8mb4_0900_bin": _MY_TEXT,
    "varchar(20) collate utf8mb4_de_pb_0900_ai_ci": _MY_TEXT,
    "char(5) collate utf8mb4_ja_0900_as_cs_ks": _text(_mysql_quote, "あアいイ a", most=5),
}

MARIADB_TYPES: dict[str, Maker] = {
    **_BINLOG_TYPES,
    "varchar(20) collate utf8mb4_nopad_bin": _MY_TEXT,
    "varchar(20) collate utf8mb4_unicode_nopad_ci": _MY_TEXT,
    "varchar(20) collate uca1400_ai_ci": _MY_TEXT,
    "char(6) collate utf8mb4_bin": _text(_mysql_quote, most=6),
    "uuid": _quoted(_random_uuid),
    "inet4": _one_of("'1.2.3.4'", "'200.1.1.1'", "'9.1.1.1'", "'0.0.0.0'"),
    "inet6": _one_of("'::'", "'::1'", "'ffff::'", "'1.2.3.4'", "'2001:db8::1'"),
    "point": lambda rng: f"point({rng.randint(-3, 3)}, {rng.randint(-3, 3)})",
}


def extension(declared: str) -> str:
    """Return the name of the extension that a type of PostgreSQL comes from, or nothing."""
    return declared.removeprefix("elsewhere.").removesuffix("[]") if declared.startswith("elsewhere.") else ""


_PREFIXED = re.compile(r"(?:n?char|varchar|text|tinyblob|binary|varbinary)\b")


_ALIKE = "€" * 600  # their bytes, and what servers sort them by, are more than the 1024 that MySQL compares in a sort


def wide_tables(*, postgres: bool) -> list[KeyTable]:
    """Return tables with long keys in all directions, and tables without key whose long values can only be a surrogate key."""
    texts = [f"'{_ALIKE}{letter}'" for letter in "fcaebd"]
    documents = [f"'{document}'" for document in ('{"a": 1}', '{"a": 2}', '[1, "b"]', "1", '"x"', "null", '{"b": {}}')]
    keys = ["varchar(700)", "varchar(700) collate utf8mb4_bin", "varbinary(3000)", "text", "blob"]
    shapes = [f"st_geomfromtext('{shape}')" for shape in ("point(1 -2)", "linestring(0 0, 1 -1)", "point(-1 2)", "point(0.1 0)")]
    others = {"longtext": texts, "json": documents, "blob": texts, "varchar(9000)": texts, "geometry": shapes}
    if postgres:
        keys = ["varchar(700)", 'text collate "C"', "bytea"]
        others = {"text": texts, "jsonb": documents, "bytea": texts}
    found: list[KeyTable] = []
    for declared in keys:
        length = "(700)" if declared in ("text", "blob") else ""
        for first, second in ("", ""), (" desc", ""), ("", " desc"), (" desc", " desc"):
            rows = [[text, "1"] for text in texts]
            found.append(KeyTable(f"wide_{len(found)}", [declared, "int"], True, [length + first, second], rows))
    for declared, values in others.items():
        rows = [[value] for value in [*values, "null", *values[:2]]]
        found.append(KeyTable(f"wide_{len(found)}", [declared], False, [""], rows))
    return found


def table_of_beginnings() -> KeyTable:
    """Return a table of MariaDB or MySQL whose key has the beginnings of texts, which do not have the order of the texts."""
    rows = [["1", f"'{text}'"] for text in ("ßa", "st", "aé", "t")]
    return KeyTable("beginnings", ["int", "varchar(20) collate utf8mb4_unicode_ci"], True, ["", "(1)"], rows)


@dataclass
class KeyTable:
    """A table with up to three columns ``c0`` to ``c2`` in its key, a number ``n`` of each row, and its version ``v``.

    ``parts`` follow the columns in the key: the length of a prefix, and the order. Without ``primary`` the key columns may be
    null, and several rows may have the same values.
    """

    name: str
    types: list[str]
    primary: bool
    parts: list[str]
    rows: list[list[str]] = field(default_factory=list)

    def statements(self, *, postgres: bool) -> list[str]:
        """Return what creates and fills the table. Rows with a key that another has are left out."""
        null = " not null" if self.primary else ""
        columns = [f"c{index} {declared}{null}" for index, declared in enumerate(self.types)]
        parts = [f"c{index}{'' if postgres else part}" for index, part in enumerate(self.parts)]
        key = f", primary key ({', '.join(parts)})" if self.primary else ""
        values = ", ".join(f"({', '.join(row)}, {number})" for number, row in enumerate(self.rows))
        names = ", ".join(f"c{index}" for index in range(len(self.types)))
        before, after = ("", " on conflict do nothing") if postgres else ("ignore ", "")
        found = [
            f"create table {self.name} ({', '.join(columns)}, n int, v int default 0{key})",
            f"insert {before}into {self.name} ({names}, n) values {values}{after}",  # noqa: S608 (a test's own database)
        ]
        if postgres and not self.primary:  # for its updates
            found.append(f"alter table {self.name} replica identity full")
        return found


def key_tables(rng: random.Random, types: Mapping[str, Maker], count: int, most_rows: int, prefix: str = "t") -> list[KeyTable]:
    """Return random tables. Each type is the first of a key in turn, and a quarter of the tables have no primary key."""
    names = list(types)
    start = rng.randrange(len(names))
    made = []
    for number in range(count):
        first = names[(start + number) % len(names)]
        found = [first, *rng.choices(names, k=rng.choice([0, 0, 1, 2]))]
        table = KeyTable(f"{prefix}{number}", found, rng.random() < 0.75, [_part(rng, declared) for declared in found])
        pools = [_pool(rng, types[declared], optional=not table.primary) for declared in table.types]
        table.rows = [[rng.choice(pool) for pool in pools] for _ in range(rng.randint(1, most_rows))]
        made.append(table)
    return made


def _part(rng: random.Random, declared: str) -> str:
    """Return the length of a prefix, which columns without a length must have, and the order of a key's part."""
    long = declared.startswith(("text", "tinyblob"))
    length = f"({rng.randint(1, 4)})" if _PREFIXED.match(declared) and (long or rng.random() < 0.2) else ""
    return length + rng.choice(["", "", "", " desc"])


def _pool(rng: random.Random, make: Maker, *, optional: bool) -> Sequence[str]:
    """Return the values of a column: few, so that keys of several columns begin alike."""
    return [make(rng) for _ in range(rng.choice([3, 8, 30]))] + ["null"] * (2 if optional else 0)
