"""Runs questions in the vectors' format through Kafka Connect's own classes.

Run: python tests/conformance/oracle/ask.py < questions.jsonl > vectors.jsonl

The jars come from Maven Central once (about 100 MB, kept in the user's cache folder); a JDK 17 or later is needed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sluiceway.java_runtime import find_java
from sluiceway.stack import maven
from sluiceway.stack.broker import KAFKA_VERSION

HERE = Path(__file__).parent
PARTS = ("api", "runtime", "json", "transforms", "file", "mirror")
# The same JVM settings as for the recorded results.
JVM = ["-Xmx800m", "-XX:+UseSerialGC", "-Duser.timezone=UTC", "-Duser.language=en", "-Duser.country=US"]


def ask(questions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the questions with ``expect``, Connect's result, without those that Connect cannot run."""
    text = "\n".join(json.dumps(question) for question in questions)
    java = str(find_java().executable)
    jars = maven.resolve([f"org.apache.kafka:connect-{part}:{KAFKA_VERSION}" for part in PARTS], title="Kafka Connect")
    with tempfile.TemporaryDirectory(prefix="sluiceway-oracle-") as classes:
        sources = sorted(map(str, HERE.glob("*.java")))
        compiler = [java, "-m", "jdk.compiler/com.sun.tools.javac.Main", "-nowarn", "-cp", maven.classpath(jars), "-d", classes]
        subprocess.run([*compiler, *sources], check=True, stderr=subprocess.DEVNULL)
        command = [java, *JVM, "-cp", maven.classpath([Path(classes), *jars]), "Oracle"]
        done = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"The oracle ended with {done.returncode}:\n{done.stderr.decode()[-3000:]}")
    answers = {answer["id"]: answer["expect"] for answer in map(json.loads, done.stdout.decode().splitlines())}
    asked = [{**question, "expect": answers[question["id"]]} for question in questions]
    return [vector for vector in asked if "unanswered" not in vector["expect"]]


if __name__ == "__main__":
    lines = sys.stdin.buffer.read().decode("utf-8").split("\n")
    for vector in ask([json.loads(line) for line in lines if line]):
        print(json.dumps(vector))
