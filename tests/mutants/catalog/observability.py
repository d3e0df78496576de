"""Metrics of applications: series, staleness markers, and gaps."""

from mutants.mutant import Mutant

_SOURCE, _EXPOSITION = "connectors/observability/prometheus.py", "connectors/observability/exposition.py"
_TARGETS, _SCRAPER = "connectors/observability/targets.py", "connectors/observability/scraper.py"
_SINK, _WRITE, _CLIENT = (f"connectors/observability/otlp_{name}.py" for name in ("sink", "write", "client"))
_TESTS = ("tests/unit/connectors/observability",)
_SINK_TESTS = ("tests/unit/connectors/observability/test_otlp_sink.py",)

MUTANTS = (
    Mutant(
        "metrics-gap",
        _SOURCE,
        "slot(self.last, interval, phase) > 1",
        "slot(self.last, interval, phase) > 2",
        "A scrape that is missing is no gap.",
        tests=_TESTS,
    ),
    Mutant(
        "metrics-gap-down",
        _SOURCE,
        "        if error is None:\n            self._gap = None\n",
        "        self._gap = None\n",
        "After a gap, the series of a target that was down at first are not marked.",
        tests=_TESTS,
    ),
    Mutant(
        "metrics-stale-down",
        _SOURCE,
        "self._ended({} if error is not None else self._exposition.series, at)",
        "self._ended(self._exposition.series, at)",
        "The series of a target that is down stay live.",
        tests=_TESTS,
    ),
    Mutant(
        "metrics-offset",
        _SOURCE,
        "(None, None) if last is None else (partition, {SCRAPED_AT: last})",
        "(partition, {SCRAPED_AT: at})",
        "A crash in the middle of a scrape is no gap.",
        tests=_TESTS,
    ),
    Mutant(
        "metrics-memory",
        _SCRAPER,
        "            if target.url in self._undone:\n",
        "            if False:\n",
        "Scrapes that nobody reads fill the memory.",
        tests=_TESTS,
    ),
    Mutant(
        "metrics-body",
        _SCRAPER,
        "                if size > self._options.body_limit:\n",
        "                if False:\n",
        "An endless answer fills the memory.",
        tests=_TESTS,
    ),
    Mutant(
        "metrics-comment",
        _EXPOSITION,
        "        if sum(map(len, lines)) != sum(map(len, known)) + sum(map(len, rests)):\n",
        "        if False:\n",
        "A change of a metric's type is not seen.",
        tests=_TESTS,
    ),
    Mutant(
        "metrics-rules",
        _EXPOSITION,
        "return values if layout.rules.allow(values) else None",
        "return values",
        "An answer with numbers that OpenMetrics forbids is taken.",
        tests=_TESTS,
    ),
    Mutant(
        "metrics-share",
        _TARGETS,
        "        return is_of_task(self.url, index, count)\n",
        "        return True\n",
        "Each task scrapes all targets.",
        tests=_TESTS,
    ),
    Mutant(
        "metrics-discovery",
        _TARGETS,
        "        self._problems[source] = problem\n",
        "        self._problems[source] = problem\n        self._found.pop(source, None)\n",
        "A file of targets that is written badly ends their scraping.",
        tests=_TESTS,
    ),
    Mutant(
        "metrics-token",
        _SCRAPER,
        "self._get(client, url, self._options.sd_login,",
        "self._get(client, url, self._options.login,",
        "The token of the targets is sent to the server that lists them.",
        tests=_TESTS,
    ),
    Mutant(
        "otlp-sent-twice",
        _SINK,
        "        except OSError as error:  # what",
        "        except FileNotFoundError as error:  # what",
        "Points that a receiver has taken are sent again, because it went away in the middle of a search for a bad one.",
        tests=_SINK_TESTS,
    ),
    Mutant(
        "otlp-rejected",
        _SINK,
        "        if taken.rejected > 0:",
        "        if False:",
        "Points that a receiver rejects among others are lost silently.",
        tests=_SINK_TESTS,
    ),
    Mutant(
        "otlp-retry-after",
        _CLIENT,
        "                self.retry_after = retry_after_seconds(answer.headers)\n",
        "",
        "A receiver gets the request again before the time that it asks for.",
        tests=_SINK_TESTS,
    ),
    Mutant(
        "otlp-buckets",
        _WRITE,
        "point.bucket_counts.extend(high - low for",
        "point.bucket_counts.extend(high for",
        "The buckets of histograms are sent as cumulative counts.",
        tests=("tests/unit/connectors/observability/test_otlp_write.py",),
    ),
)
