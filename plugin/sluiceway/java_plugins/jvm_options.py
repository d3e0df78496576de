"""Decides the options of Java processes of plugins. No I/O."""

from __future__ import annotations

import re
import shlex

HEAP_MB = 256
"""The largest heap of a Java process in megabytes, unless its options set another one."""

# Enough for the objects of a few batches: with less, most of them are copied before they are garbage.
_YOUNG_MB = 48
_FIRST_HEAP_MB = 64
_LARGEST_SHARE_OF_YOUNG = 4  # a quarter of the heap

# Small, because there may be a process for each task. Without the two limits the JVM reserves more address space than
# spark.executor.pyspark.memory usually allows. With four times the usual thresholds of the optimising compiler it compiles what a
# task does for each record, but not what it does for each batch: half its work, and the same code where time is spent.
_OPTIONS = (
    f"-Xmx{HEAP_MB}m",
    "-XX:CompressedClassSpaceSize=64m",
    "-XX:ReservedCodeCacheSize=64m",
    "-XX:Tier4InvocationThreshold=20000",
    "-XX:Tier4MinInvocationThreshold=2400",
    "-XX:Tier4CompileThreshold=60000",
    "-XX:-UsePerfData",
    "-XX:-CreateCoredumpOnCrash",
    "-Djava.awt.headless=true",
    "-Dlog4j2.isThreadContextMapInheritable=true",
    "-Dlog4j2.contextSelector=org.apache.logging.log4j.core.selector.BasicContextSelector",
)
_SERIAL = "-XX:+UseSerialGC"
_COLLECTOR = re.compile(r"-XX:\+Use\w+GC")
_HEAP = re.compile(r"(?:^|\s)-Xmx(\d+)([kmgKMG]?)(?=\s|$)")


def jvm_options(java_opts: str) -> list[str]:
    """Return the options of a process. ``java_opts`` are the user's, which win. Raises ValueError for an unclosed quote."""
    heap = heap_mb(java_opts)
    young = min(_YOUNG_MB, heap // _LARGEST_SHARE_OF_YOUNG)
    own = shlex.split(java_opts)
    collector = [] if any(_COLLECTOR.fullmatch(option) for option in own) else [_SERIAL]  # a JVM refuses to start with two
    return [*_OPTIONS, *collector, f"-Xms{min(_FIRST_HEAP_MB, heap)}m", f"-Xmn{young}m", *own]


def heap_mb(java_opts: str) -> int:
    """Return the megabytes of the largest heap with these options; the last one wins, as in Java."""
    found = _HEAP.findall(java_opts)
    if not found:
        return HEAP_MB
    size, unit = found[-1]
    number = int(size)
    return {"": number >> 20, "k": number >> 10, "m": number, "g": number << 10}[unit.lower()]
