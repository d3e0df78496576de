"""Connect's data API: schemas, structs, values, headers. No I/O."""

from sluiceway.data.headers import Header, Headers
from sluiceway.data.instant import Instant, millis_of
from sluiceway.data.logical import date_schema, decimal_schema, time_schema, timestamp_schema
from sluiceway.data.numbers import BigInteger, Float32, Int8, Int16, Int32
from sluiceway.data.projection import project
from sluiceway.data.schema import (
    BOOLEAN_SCHEMA,
    BYTES_SCHEMA,
    FLOAT32_SCHEMA,
    FLOAT64_SCHEMA,
    INT8_SCHEMA,
    INT16_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_BOOLEAN_SCHEMA,
    OPTIONAL_BYTES_SCHEMA,
    OPTIONAL_FLOAT32_SCHEMA,
    OPTIONAL_FLOAT64_SCHEMA,
    OPTIONAL_INT8_SCHEMA,
    OPTIONAL_INT16_SCHEMA,
    OPTIONAL_INT32_SCHEMA,
    OPTIONAL_INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    Field,
    Schema,
    Type,
)
from sluiceway.data.schema_builder import SchemaBuilder
from sluiceway.data.struct import Struct, validate_value
from sluiceway.data.text import java_text
from sluiceway.data.values.inferred_schemas import schema_of
from sluiceway.java.dates.simple_date_format import SimpleDateFormat

__all__ = [
    "BOOLEAN_SCHEMA",
    "BYTES_SCHEMA",
    "FLOAT32_SCHEMA",
    "FLOAT64_SCHEMA",
    "INT8_SCHEMA",
    "INT16_SCHEMA",
    "INT32_SCHEMA",
    "INT64_SCHEMA",
    "OPTIONAL_BOOLEAN_SCHEMA",
    "OPTIONAL_BYTES_SCHEMA",
    "OPTIONAL_FLOAT32_SCHEMA",
    "OPTIONAL_FLOAT64_SCHEMA",
    "OPTIONAL_INT8_SCHEMA",
    "OPTIONAL_INT16_SCHEMA",
    "OPTIONAL_INT32_SCHEMA",
    "OPTIONAL_INT64_SCHEMA",
    "OPTIONAL_STRING_SCHEMA",
    "STRING_SCHEMA",
    "BigInteger",
    "Field",
    "Float32",
    "Header",
    "Headers",
    "Instant",
    "Int8",
    "Int16",
    "Int32",
    "Schema",
    "SchemaBuilder",
    "SimpleDateFormat",
    "Struct",
    "Type",
    "date_schema",
    "decimal_schema",
    "java_text",
    "millis_of",
    "project",
    "schema_of",
    "time_schema",
    "timestamp_schema",
    "validate_value",
]
