"""Generates questions about chains: records and one to four transforms, whose options often name the record's fields."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from conformance.oracle import generate_data as data
from conformance.oracle.generate_data import maybe
from conformance.oracle.samples import LOGICAL, NAMES

Json = Any
Options = dict[str, str]

_TRANSFORMS = "org.apache.kafka.connect.transforms."
_PREDICATES = _TRANSFORMS + "predicates."
_TYPES = ["int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string", "string"]
_FORMATS = [
    "yyyy-MM-dd",
    "yyyyMMdd",
    "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'",
    "yyyy-MM-dd HH:mm:ss",
    "HH:mm",
    "dd/MM/yyyy",
    "EEE MMM d yyyy",
    "yyyy-MM-dd'T'HH:mm:ssZ",
    "yyyy-MM-dd'T'HH:mm:ssXXX",
    "y-M-d H:m:s.S",
    "hh:mm a",
    "D yyyy",
    "MMMM d, yyyy",
    "q",
    "G yyyy",
    "yyyyMMddHHmmssSSS",
    "ss",
    "k:m",
    "K a",
    "w YYYY",
    "u",
    "z",
    "'x'",
    "''yyyy",
    "E",
    "F",
    "W",
    "yyyyyy",
    "MM",
]


class Fields:
    """The field names of a record's key or value, top level and nested."""

    def __init__(self, random: Random, node: Json) -> None:
        self.random = random
        self.top, self.paths = _names(node)

    def one(self, *, path: bool = False) -> str:
        known = self.paths if path and maybe(self.random, 0.6) else self.top
        if known and maybe(self.random, 0.85):
            return self.random.choice(known)
        return self.random.choice(NAMES[:14])

    def some(self, most: int = 3) -> str:
        odd = self.random.random()
        names = [self.one() for _ in range(self.random.randint(1, most))]
        names = names if odd < 0.1 else list(dict.fromkeys(names))
        return " , ".join(names) if odd < 0.15 else "" if odd > 0.985 else ",".join(names)


def _names(node: Json) -> tuple[list[str], list[str]]:
    if node.get("schema") is not None:
        paths = list(_schema_paths(node["schema"], ()))
    elif isinstance(node.get("payload"), dict):
        paths = list(_map_paths(node["payload"], ()))
    else:
        typed = node.get("typed") or {}
        pairs = typed.get("v") if typed.get("t") == "map" else ()
        paths = [(key["v"],) for key, _ in pairs or () if key and key["t"] == "string"]
    return [path[0] for path in paths if len(path) == 1], [".".join(map(_quoted, path)) for path in paths]


def _quoted(name: str) -> str:
    return f"`{name}`" if "." in name else name


def _schema_paths(schema: Json, above: tuple[str, ...]) -> Any:
    for field in schema.get("fields", ()):
        yield (*above, field["field"])
        yield from _schema_paths(field, (*above, field["field"]))


def _map_paths(node: Json, above: tuple[str, ...]) -> Any:
    for name, inner in node.items():
        yield (*above, name)
        if isinstance(inner, dict):
            yield from _map_paths(inner, (*above, name))


# --- one generator of options for each transform -----------------------------------------------------------------------


def _some_of(random: Random, **options: Callable[[], str]) -> Options:
    """Take each option with even probability, those with a trailing underscore almost always; double underscores become dots."""
    taken = {}
    for name, make in options.items():
        if maybe(random, 0.97 if name.endswith("_") else 0.35):
            taken[name.rstrip("_").replace("__", ".")] = make()
    return taken


def _flag(random: Random) -> str:
    return random.choice(["true", "false", "false", "TRUE", " false", "junk" if maybe(random, 0.1) else "true"])


def _cast(random: Random, fields: Fields) -> Options:
    def type_() -> str:
        kind = random.choice(_TYPES)
        return random.choice([kind.upper(), "bytes", "date", "", " " + kind]) if maybe(random, 0.04) else kind

    def spec() -> str:
        if maybe(random, 0.15):
            return type_()
        names = list(dict.fromkeys(fields.one() for _ in range(random.randint(1, 4))))
        return ",".join(f"{name}:{type_()}" for name in names) + random.choice([""] * 30 + [",", ":x", ",int8"])

    return _some_of(random, spec_=spec, replace__null__with__default=lambda: _flag(random))


def _field(random: Random, fields: Fields) -> Options:
    v2 = maybe(random, 0.5)

    def path() -> str:
        made = fields.one(path=v2)
        return random.choice(["`" + made, made + ".", "a\\`b", "." + made, made + "`", ""]) if maybe(random, 0.06) else made

    made = _some_of(random, field_=path, replace__null__with__default=lambda: _flag(random))
    if v2:
        made["field.syntax.version"] = random.choice(["V2", "V2", "V2", "v2", "V3" if maybe(random, 0.2) else "V2"])
    return made


def _insert_field(random: Random, fields: Fields) -> Options:
    def name() -> str:
        made = fields.one() if maybe(random, 0.15) else random.choice(["i1", "i2", "i3", "i4", "x.y", "!"])
        return made + random.choice(["", "", "!", "?", "!?"])

    made = _some_of(
        random,
        topic__field=name,
        partition__field=name,
        timestamp__field=name,
        replace__null__with__default=lambda: _flag(random),
    )
    if maybe(random, 0.25):
        made["offset.field"] = name()
    if maybe(random, 0.5):
        made["static.field"] = name()
        if maybe(random, 0.95):
            made["static.value"] = data.text(random)
    return made


def _mask(random: Random, fields: Fields) -> Options:
    return _some_of(
        random,
        fields_=fields.some,
        replacement=lambda: random.choice([data.text(random), "0", "7", "-1", "12.9", "300", "1e3", "***"]),
        replace__null__with__default=lambda: _flag(random),
    )


def _replace(random: Random, fields: Fields) -> Options:
    def renames() -> str:
        pairs = [(fields.one(), random.choice(["r1", "r2", "r3", fields.one()])) for _ in range(random.randint(1, 3))]
        return ",".join(f"{old}:{new}" for old, new in pairs) + random.choice([""] * 20 + [",", ":z", ",q"])

    return _some_of(
        random, include=fields.some, exclude=fields.some, renames=renames, replace__null__with__default=lambda: _flag(random)
    )


def _timestamp_converter(random: Random, fields: Fields) -> Options:
    made = _some_of(
        random,
        target__type_=lambda: random.choice(
            ["string", "unix", "Date", "Time", "Timestamp", "date" if maybe(random, 0.1) else "unix"]
        ),
        field=fields.one,
        format=lambda: random.choice(_FORMATS),
        replace__null__with__default=lambda: _flag(random),
        unix__precision=lambda: random.choice(
            ["nanoseconds", "microseconds", "milliseconds", "seconds", "minutes" if maybe(random, 0.1) else "seconds"]
        ),
    )
    if made.get("target.type") == "string" and maybe(random, 0.9):
        made["format"] = random.choice(_FORMATS)
    return made


def _header_from(random: Random, fields: Fields) -> Options:
    names = list(dict.fromkeys(fields.one() for _ in range(random.randint(1, 3))))
    count = len(names) if maybe(random, 0.95) else 1
    return _some_of(
        random,
        fields_=lambda: ",".join(names),
        headers_=lambda: ",".join(random.choice(["h1", "hf0", "q", "z"]) for _ in range(count)),
        operation_=lambda: random.choice(["move", "copy", "copy", "MOVE" if maybe(random, 0.1) else "move"]),
        replace__null__with__default=lambda: _flag(random),
    )


def _metadata(random: Random, _fields: Fields) -> Options:
    return _some_of(
        random,
        schema__name=lambda: random.choice(["S2", "", "com.x.N1", LOGICAL + "Date"]),
        schema__version=lambda: random.choice(
            ["1", "0", "-3", " 7 ", "x" if maybe(random, 0.2) else "2", "2147483648" if maybe(random, 0.1) else "5"]
        ),
        replace__null__with__default=lambda: _flag(random),
    )


def _regex_router(random: Random, _fields: Fields) -> Options:
    patterns = [
        ".*",
        "(.*)",
        "ord(.*)",
        "a{2,3}?",
        "(a|b)(-)?.*",
        "[a-z]+",
        "(?<n>.*)s",
        "x",
        "",
        "\\w+",
        "(.)(.)(.*)",
        "(?i)ORDERS",
        "[",
        ".*?",
        "a*+",
        "\\d*",
    ]
    replacements = ["$0", "$1", "x-$1", "${n}", "\\$", "$2", "$10", "${topic}", "", "$", "\\", "y", "$1$1", "a b"]
    return _some_of(random, regex_=lambda: random.choice(patterns), replacement_=lambda: random.choice(replacements))


def _timestamp_router(random: Random, _fields: Fields) -> Options:
    topics = [
        "${topic}-${timestamp}",
        "${timestamp}.${topic}",
        "x",
        "${topic}",
        "${timestamp}${timestamp}",
        "${other}",
        "",
        "$1-${timestamp}",
    ]
    return _some_of(random, topic__format=lambda: random.choice(topics), timestamp__format=lambda: random.choice(_FORMATS))


def _header_names(random: Random) -> str:
    return random.choice(["h1", "h2", "h1,h2", "nh", "H1", "h1,h1", "h1,", "", "hf0, h3"])


_OPTIONS: dict[str, Callable[[Random, Fields], Options]] = {
    "Cast": _cast,
    "ExtractField": _field,
    "Flatten": lambda random, _: _some_of(random, delimiter=lambda: random.choice([".", "_", "", "-", "::", "$"])),
    "HoistField": lambda random, fields: _some_of(random, field_=fields.one),
    "InsertField": _insert_field,
    "MaskField": _mask,
    "ReplaceField": _replace,
    "TimestampConverter": _timestamp_converter,
    "HeaderFrom": _header_from,
    "SetSchemaMetadata": _metadata,
    "ValueToKey": lambda random, fields: _some_of(
        random, fields_=fields.some, replace__null__with__default=lambda: _flag(random)
    ),
    "DropHeaders": lambda random, _: _some_of(random, headers_=lambda: _header_names(random)),
    "InsertHeader": lambda random, _: _some_of(
        random, header_=lambda: random.choice(["h1", "nh", ""]), value__literal_=lambda: data.text(random)
    ),
    "RegexRouter": _regex_router,
    "TimestampRouter": _timestamp_router,
    "Filter": lambda _random, _fields: {},
}
_SIDED = (
    "Cast",
    "ExtractField",
    "Flatten",
    "HoistField",
    "InsertField",
    "MaskField",
    "ReplaceField",
    "TimestampConverter",
    "HeaderFrom",
    "SetSchemaMetadata",
)
# More complex transforms get more questions.
_CHOICES = [
    *_OPTIONS,
    "Cast",
    "Cast",
    "TimestampConverter",
    "TimestampConverter",
    "ReplaceField",
    "ExtractField",
    "InsertField",
    "MaskField",
    "Flatten",
    "Flatten",
]


def _predicates(random: Random) -> dict[str, Options]:
    names = {"type": _PREDICATES + "HasHeaderKey", "name": random.choice(["h1", "nh", "", "h2"])}
    topics = {"type": _PREDICATES + "TopicNameMatches", "pattern": random.choice([".*", "ord.*", "a", "[", "", "x-."])}
    return {"tomb": {"type": _PREDICATES + "RecordIsTombstone"}, "hh": names, "top": topics}


def question(random: Random, public: list[Json]) -> Json:
    """Return a question about a chain: new, or derived from a public one."""
    record = data.record(random) if maybe(random, 0.75) else random.choice(public)["record"]
    if maybe(random, 0.05):
        record = {**record, "key": record["value"], "value": record["key"]}
    config: Options = {}
    count = random.choice([1, 1, 1, 2, 2, 3, 4])
    for index in range(count):
        config |= _stage(random, f"t{index}", record, lonely=count == 1)
    config["transforms"] = ",".join(f"t{index}" for index in range(count))
    used = {option for name, option in config.items() if name.endswith(".predicate")}
    defined = {alias: made for alias, made in _predicates(random).items() if alias in used}
    if defined and maybe(random, 0.97):
        config["predicates"] = ",".join(defined)
        config |= {f"predicates.{alias}.{name}": option for alias, made in defined.items() for name, option in made.items()}
    if maybe(random, 0.25):
        config = _borrowed(random, public)
    return {"kind": "transform", "category": "Generated.chain", "config": config, "record": record}


def _stage(random: Random, alias: str, record: Json, *, lonely: bool) -> Options:
    name = random.choice(_CHOICES)
    side = "Key" if maybe(random, 0.15) else "Value"
    type_ = _TRANSFORMS + name + (f"${side}" if name in _SIDED else "")
    options = {"type": type_, **_OPTIONS[name](random, Fields(random, record[side.lower()]))}
    if (maybe(random, 0.2) or name == "Filter") and not (lonely and maybe(random, 0.3)):
        options["predicate"] = random.choice(["tomb", "hh", "top"])
        if maybe(random, 0.4):
            options["negate"] = _flag(random)
    return {f"transforms.{alias}.{name}": option for name, option in options.items()}


def _borrowed(random: Random, public: list[Json]) -> Options:
    """Return a public question's config with one or two options changed."""
    config = dict(random.choice(public)["config"])
    others = random.choice(public)["config"]
    for name in list(config):
        if name not in ("transforms", "predicates") and not name.endswith("type") and maybe(random, 0.25):
            config[name] = others.get(name, random.choice([data.text(random), random.choice(NAMES), config[name] + ",b"]))
    return config
