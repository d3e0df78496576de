"""ReplaceField: drops or renames fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from sluiceway.api.transform import ConnectRecord, Resolved
from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.validators import Check, UniqueList
from sluiceway.data import Field, Schema, Struct
from sluiceway.data import Type as SchemaType
from sluiceway.data.logical import DATE, DECIMAL, TIME, TIMESTAMP
from sluiceway.errors import DataError
from sluiceway.java.hash_map import hash_map_order
from sluiceway.transforms.util.field_transform import FieldTransform
from sluiceway.transforms.util.mappings import COLON_PAIRS, parse_mappings
from sluiceway.transforms.util.requirements import java_class, require_map
from sluiceway.transforms.util.structs import REPLACE_NULL_WITH_DEFAULT, settler, struct_like, struct_of

if TYPE_CHECKING:
    from sluiceway.transforms.util.columnar import ColumnFunction

_PURPOSE = "field replacement"


def parse_renames(value: ConfigValue) -> dict[str, str]:
    """Parse a list of ``old:new`` to new names by old names. Raises ConfigError."""
    return {old: new for old, new in parse_mappings(value, allow_single=False) if new is not None}


def _valid_renames(_name: str, value: ConfigValue) -> None:
    parse_renames(value)


_CONFIG = ConfigDef(
    [
        ConfigKey(
            name="exclude",
            type=Type.LIST,
            default=[],
            validator=UniqueList(allow_empty=True),
            importance=Importance.MEDIUM,
            doc="Fields to drop, even if include lists them.",
        ),
        ConfigKey(
            name="include",
            type=Type.LIST,
            default=[],
            validator=UniqueList(allow_empty=True),
            importance=Importance.MEDIUM,
            doc="The only fields to keep; empty keeps all.",
        ),
        ConfigKey(
            name="renames",
            type=Type.LIST,
            default=[],
            validator=Check(_valid_renames, COLON_PAIRS),
            importance=Importance.MEDIUM,
            doc="Fields to rename, as old:new separated by commas.",
        ),
        REPLACE_NULL_WITH_DEFAULT,
    ]
)


class ReplaceField(FieldTransform):
    """Drops or renames fields of a record's key or value."""

    purpose = _PURPOSE

    @classmethod
    def config_def(cls) -> ConfigDef:
        return _CONFIG

    def configure(self, config: Mapping[str, str]) -> None:
        values = _CONFIG.parse(config)
        exclude, include = values["exclude"], values["include"]
        self._exclude = frozenset(exclude if isinstance(exclude, list) else ())
        self._include = frozenset(include if isinstance(include, list) else ())
        self._renames = parse_renames(values["renames"])
        self._replace = bool(values["replace.null.with.default"])

    def _keeps(self, name: Any) -> bool:
        return name not in self._exclude and (not self._include or name in self._include)

    def resolve(self, schema: Schema | None) -> Resolved:
        if schema is None:
            return Resolved(None, self._of_maps())
        return self._of_structs(schema) if schema.type is SchemaType.STRUCT else self.refuse_schema(schema)

    def _of_maps(self) -> Callable[[Any, ConnectRecord], dict[Any, Any]]:
        exclude, renames, keeps = self._exclude, self._renames, self._keeps
        only_included, pairs = bool(self._include), tuple(renames.items())

        def replace(value: Any, _record: ConnectRecord) -> dict[Any, Any]:
            given = value if type(value) is dict else require_map(value, _PURPOSE)
            if only_included:
                kept = {name: item for name, item in given.items() if keeps(name)}
            else:
                kept = dict(given)
                for name in exclude:
                    kept.pop(name, None)
            if not renames:
                return kept
            size = len(kept)
            moved = [(new, kept.pop(old)) for old, new in pairs if old in kept]
            if moved:
                kept.update(moved)
                if len(kept) < size:
                    return with_duplicates(given)
            return kept

        def with_duplicates(given: Mapping[Any, Any]) -> dict[Any, Any]:
            """Of fields that get the same name, keep the last in the order of Java's HashMap, as Connect does."""
            return {renames.get(name, name): given[name] for name in hash_map_order(given) if keeps(name)}

        return replace

    def _of_structs(self, schema: Schema) -> Resolved:
        renames = self._renames
        kept = [field for field in schema.fields if self._keeps(field.name)]
        updated = struct_like(schema, [(renames.get(field.name, field.name), field.schema) for field in kept])
        found = self._sources(schema, updated)
        settle = settler(found, updated.fields, self._replace, _misfits(found, updated.fields))
        pick = _picker([source.index for source in found], len(schema.fields))

        def replace(value: Any, record: ConnectRecord) -> Any:
            if type(value) is not Struct or (value.schema is not schema and value.schema != schema):
                return self.apply_to_other(value, record, schema)
            values = pick(value.values_)
            settle(values)
            return struct_of(updated, values)

        return Resolved(updated, replace)

    def _sources(self, schema: Schema, updated: Schema) -> list[Field]:
        """Return the field that each field of the updated schema takes its values from."""
        # Connect looks a renamed field up in the reversed renames, where the last of equal new names wins.
        reversed_renames = {self._renames[old]: old for old in hash_map_order(self._renames)}
        sources = [schema.field(reversed_renames.get(field.name, field.name)) for field in updated.fields]
        missing = [field.name for field, source in zip(updated.fields, sources, strict=True) if source is None]
        if missing:
            raise DataError(f"{reversed_renames[missing[0]]} is not a valid field name")
        return [source for source in sources if source is not None]

    def column_function(self, schema: Schema, changed: Schema) -> ColumnFunction | None:
        from sluiceway.transforms.columns.structs import copies, copying

        if schema.type is not SchemaType.STRUCT:
            return None
        fields = copies(self._sources(schema, changed), changed.fields)
        crossing = any(field.source.schema != field.target.schema for field in fields)
        return None if crossing else copying(fields, changed, self._replace)


def _misfits(sources: Sequence[Field], targets: Sequence[Field]) -> dict[int, Callable[[Any], Any]]:
    """Return functions that refuse values by position: crossing renames can read a field of another type."""

    def refusal(source: Field, target: Field) -> Callable[[Any], Any]:
        def refuse(value: Any) -> Any:
            schema = target.schema
            if _kind(source.schema) is SchemaType.STRUCT and schema.type is SchemaType.STRUCT:
                raise DataError("Struct schemas do not match.")
            name = "" if schema.name is None else f' "{schema.name}"'
            raise DataError(
                f"Invalid Java object for schema{name} with type {schema.type.name}: class {java_class(value, source.schema)} "
                f'for field: "{target.name}"'
            )

        return refuse

    return {
        at: refusal(source, target)
        for at, (source, target) in enumerate(zip(sources, targets, strict=True))
        if _kind(source.schema) != _kind(target.schema)
        or (target.schema.type is SchemaType.STRUCT and source.schema != target.schema)
    }


def _kind(schema: Schema) -> object:
    """Return a key that is equal for schemas whose values have the same Java class."""
    if schema.name in (DATE, TIME, TIMESTAMP):
        return TIMESTAMP
    return DECIMAL if schema.name == DECIMAL else schema.type


def _picker(indexes: list[int], size: int) -> Callable[[list[Any]], list[Any]]:
    if indexes == list(range(size)):
        return list.copy
    if len(indexes) < 2:
        return lambda values: [values[at] for at in indexes]
    several = itemgetter(*indexes)
    return lambda values: list(several(values))


class ReplaceFieldKey(ReplaceField):
    """Drops or renames fields of a record's key."""

    java_class = "org.apache.kafka.connect.transforms.ReplaceField$Key"
    part = "key"


class ReplaceFieldValue(ReplaceField):
    """Drops or renames fields of a record's value."""

    java_class = "org.apache.kafka.connect.transforms.ReplaceField$Value"
    part = "value"
