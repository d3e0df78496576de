"""Retries and their back-off."""

from mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "retry-delay-doubles",
        "runtime/errors/retries.py",
        "_FIRST_DELAY_SECONDS * 2.0 ** min(attempt - 1, _MOST_DOUBLINGS)",
        "_FIRST_DELAY_SECONDS * 2.0 ** min(attempt, _MOST_DOUBLINGS)",
        "The first retry waits twice as long.",
    ),
    Mutant(
        "retry-delay-limit",
        "runtime/errors/retries.py",
        "return seconds if seconds <= longest else longest * jitter",
        "return seconds",
        "errors.retry.delay.max.ms is ignored.",
    ),
    Mutant(
        "retry-not-retriable",
        "runtime/errors/retries.py",
        "while isinstance(error, RetriableError) and (now := self._clock()) < deadline:",
        "while (now := self._clock()) < deadline:",
        "An error that is not retriable is retried.",
    ),
    Mutant(
        "retry-deadline",
        "runtime/errors/retries.py",
        "random.random()), deadline - now)",
        "random.random()), math.inf if False else 1e9)",
        "A retry waits beyond errors.retry.timeout.",
    ),
    Mutant(
        "retry-forever",
        "runtime/errors/error_settings.py",
        'retry_seconds=float("inf") if timeout < 0 else timeout / 1000,',
        "retry_seconds=max(0, timeout) / 1000,",
        "errors.retry.timeout=-1 does not retry.",
    ),
    Mutant(
        "retry-source-backoff",
        "runtime/source/worker_source_task.py",
        "            self._backoff = min(self._backoff * 2, BACKOFF_SECONDS[1])",
        "            self._backoff = self._backoff * 2",
        "The back-off of poll() has no maximum.",
    ),
    Mutant(
        "retry-source-backoff-reset",
        "runtime/source/worker_source_task.py",
        '        self._backoff = BACKOFF_SECONDS[0]\n        self._waits.succeeded("poll()")',
        '        self._waits.succeeded("poll()")',
        "The back-off of poll() is not reset by a success.",
    ),
    Mutant(
        "retry-sink-timeout",
        "runtime/sink/worker_sink_task.py",
        "seconds = self._context.take_timeout(default)",
        "seconds = default",
        "The wait that a sink task sets with timeout() before a retry is ignored.",
    ),
    Mutant(
        "retry-lease-stopping",
        "worker/lease.py",
        "                if is_refused or self._stopping.is_set() or time.monotonic() >= deadline:",
        "                if is_refused or time.monotonic() >= deadline:",
        "A driver that must stop goes on trying to write its status.",
    ),
    Mutant(
        "retry-transaction-aborted",
        "kafka/fenced_writer.py",
        "if not error.retriable() or attempt == _ATTEMPTS:",
        "if attempt == _ATTEMPTS:",
        "A fatal error of a transaction is retried.",
    ),
)
