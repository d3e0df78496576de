"""Makes the page of supported versions from the cells and results of ``make test-matrix``."""

from __future__ import annotations

from collections.abc import Iterator

from docs_markdown import cell, code, table
from matrix_cells import CELLS, PACKAGES, describe, results

INTRODUCTION = """
| | Accepted by the package |
|---|---|
| Python | 3.10 to 3.14 |
| Apache Airflow | 3.x from the version that the extra `airflow` names; 2.x has no Task SDK, DAG bundles, and asset events |
| PySpark | 3.5 on Python 3.10 and 3.11; 4.x. The format `sluiceway` for jobs of yours needs 4.0 |
| confluent-kafka | 2.10 and newer |

`make test-matrix` builds an environment for each row from the wheel with pip alone, without the repository's constraints.
`newest` rows are what a plain `pip install` gives on that day; `floors` have the oldest version of each direct requirement. In
each it imports every module, and runs the file quickstart, a JDBC source, ParquetSink, SparkSink, change data capture of
PostgreSQL, and a connector as a DAG with pause and resume. `airflow` rows install Airflow with its own constraints and then
Sluiceway without them, as Airflow's documentation says. `constraints` rows resolve each extra beside these constraints: an extra
that is refused there can be installed afterwards.

## pyspark beside pyspark-client

Airflow's Spark provider installs pyspark-client, which has many of pyspark's files in another version. Sluiceway's drivers and
Python workers use the archive of PySpark beside Spark's jars there, so connectors run. For `import pyspark` in code of yours,
install equal versions:

```sh
pip install --force-reinstall --no-deps pyspark==4.2.0 pyspark-client==4.2.0
```

A driver whose PySpark and jars differ in their first two numbers ends with a sentence that says which version to install.
"""


def sections() -> Iterator[str]:
    """Yield the table of cells."""
    recorded = results()
    rows = [tuple(cell(text) or "-" for text in describe(each, recorded.get(each.name))) for each in CELLS]
    head = ("Row", "Python", *map(code, PACKAGES), "Result")
    yield "## What was tried\n\n" + table(head, rows)
