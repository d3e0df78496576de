"""Writes the reference page of metrics from their catalog."""

from __future__ import annotations

from collections.abc import Iterator

from docs_markdown import code, table

from sluiceway.metrics.beans import CONNECT
from sluiceway.metrics.catalog import ABSENT, METRICS
from sluiceway.metrics.naming import metric_name

INTRODUCTION = """
[Watch connectors with Prometheus](../how-to/watch-with-prometheus.md) shows how to scrape the metrics.

Each section is a type of JMX bean in Kafka Connect, its consumers, or its producers; those of `sluiceway` are our own. With
`/metrics?names=jmx` a name has the bean's type in full, as the JMX exporter makes it without rules. Rates, averages, and maxima
cover the last 30 to 60 s. Those of Kafka clients come from librdkafka every 5 s.
"""

ABSENT_TEXT = """\
Of the {all} metrics that Kafka Connect 4.3 documents, {here} exist here ({share:.0%}). The others, and those of the group's own
clients (`connect-coordinator-metrics`, `connect-metrics`, `connect-node-metrics`), describe a worker group:
"""


def sections() -> Iterator[str]:
    """Yield a section for each type of bean, and one for what does not exist."""
    for (domain, kind), metrics in METRICS.items():
        rows = [(code(name), code(metric_name(domain, kind, name)), meaning) for name, meaning in metrics.items()]
        yield f"## {kind} ({domain})\n\n{table(('Metric', 'In Prometheus', 'Meaning'), rows)}\n"
    rows = [(code(kind), code(name), reason) for (kind, name), reason in ABSENT.items()]
    here = sum(len(metrics) for (domain, kind), metrics in METRICS.items() if domain == CONNECT and kind != "app-info")
    text = ABSENT_TEXT.format(here=here, all=here + len(rows), share=here / (here + len(rows)))
    yield f"## Metrics of Kafka Connect that do not exist\n\n{text}\n{table(('Type', 'Metric', 'Reason'), rows)}\n"
