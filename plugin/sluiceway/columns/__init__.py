"""Connect's schemas and values as Arrow types and arrays, for the columnar forms of converters, transforms and tasks.

Imports PyArrow. Modules that also work without it import this package inside functions.
"""

from sluiceway.columns.arrays import to_array, to_values
from sluiceway.columns.arrow_schema import arrow_field, arrow_fields, arrow_type
from sluiceway.columns.rows import column_batches, column_of, column_values, sink_records

__all__ = [
    "arrow_field",
    "arrow_fields",
    "arrow_type",
    "column_batches",
    "column_of",
    "column_values",
    "sink_records",
    "to_array",
    "to_values",
]
