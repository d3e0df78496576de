from __future__ import annotations

import pytest

from sluiceway.java_plugins.jvm_options import heap_mb, jvm_options


@pytest.mark.parametrize(
    ("java_opts", "megabytes"),
    [("", 256), ("-Dx=1", 256), ("-Xmx1g", 1024), ("-Xmx1G -Xmx64m", 64), ("-Xmx131072k", 128), ("-Xmx67108864", 64)],
)
def test_the_largest_heap(java_opts: str, megabytes: int) -> None:
    assert heap_mb(java_opts) == megabytes


@pytest.mark.parametrize(
    ("java_opts", "expected"),
    [
        ("", ["-Xms64m", "-Xmn48m"]),
        ("-Xmx2g", ["-Xms64m", "-Xmn48m"]),
        ("-Xmx128m", ["-Xms64m", "-Xmn32m"]),
        ("-Xmx32m", ["-Xms32m", "-Xmn8m"]),
    ],
)
def test_the_first_heap_and_the_young_generation_fit_into_the_largest(java_opts: str, expected: list[str]) -> None:
    options = jvm_options(java_opts)
    assert [each for each in options if each.startswith(("-Xms", "-Xmn"))] == expected


def test_the_users_options_come_last_so_that_they_win() -> None:
    assert jvm_options("-Xmn100m '-Dname=two words'")[-2:] == ["-Xmn100m", "-Dname=two words"]


@pytest.mark.parametrize(
    ("java_opts", "collector"), [("", "Serial"), ("-XX:+UseG1GC", "G1"), ("-Dx=1 -XX:+UseParallelGC", "Parallel")]
)
def test_there_is_one_garbage_collector(java_opts: str, collector: str) -> None:
    assert [each for each in jvm_options(java_opts) if each.endswith("GC")] == [f"-XX:+Use{collector}GC"]
