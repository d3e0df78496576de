"""The error in a driver's log."""

from __future__ import annotations

import pytest

from sluiceway.provider.driver.last_error import last_error

PYTHON = """\
INFO starting
Traceback (most recent call last):
File "a.py", line 3, in <module>
import foo.bar
ModuleNotFoundError: No module named 'foo'
26/11/27 INFO ShutdownHookManager: Shutdown hook called
"""
CHAINED = """\
Traceback (most recent call last):
  File "a.py", line 3, in f
    1 / 0
ZeroDivisionError: division by zero

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "a.py", line 5, in <module>
    raise ConnectError("no") from None
sluiceway.errors.ConnectError: no way
"""
JAVA = """\
26/11/27 WARN NativeCodeLoader: no
Exception in thread "main" java.lang.IllegalArgumentException: bad jar
at org.apache.spark.deploy.SparkSubmit.main(SparkSubmit.scala)
Caused by: java.lang.ClassNotFoundException: org.example.Missing
at java.net.URLClassLoader.findClass(URLClassLoader.java:1)
... 12 more
26/11/27 INFO ShutdownHookManager: Shutdown hook called
"""
LOGGED_JAVA = """\
26/11/27 ERROR SparkContext: Error initializing SparkContext.
java.io.FileNotFoundException: File file:/none.jar does not exist
at org.apache.spark.SparkContext.addJar(SparkContext.scala)
26/11/27 INFO SparkContext: stopped
"""


@pytest.mark.parametrize(
    ("text", "error", "begin"),
    [
        (PYTHON, "ModuleNotFoundError: No module named 'foo'", 1),
        (CHAINED, "sluiceway.errors.ConnectError: no way", 0),
        (PYTHON + JAVA, "java.lang.ClassNotFoundException: org.example.Missing", 7),
        (JAVA + PYTHON, "ModuleNotFoundError: No module named 'foo'", 8),
        (LOGGED_JAVA, "java.io.FileNotFoundException: File file:/none.jar does not exist", 1),
        ("Error: Failed to load class a.B.\nINFO end", "Failed to load class a.B.", 0),
        (
            "[x] ERROR [orders|worker] Cannot read the worker file (sluiceway)\nINFO end",
            "[orders|worker] Cannot read the worker file (sluiceway)",
            0,
        ),
    ],
)
def test_the_last_exception_or_else_the_last_logged_error_is_found(text: str, error: str, begin: int) -> None:
    found = last_error(text.splitlines())
    assert found is not None
    assert (found.text, found.begin) == (error, begin)


@pytest.mark.parametrize("text", ["", "INFO all is well", "at a.b.C(D.java)", "java.lang.Exception: in a sentence"])
def test_other_lines_are_no_errors(text: str) -> None:
    assert last_error(text.splitlines()) is None
