"""Runs a scenario as the environment says: KILLS and CLUSTER_KILLS, SEED, FORMATS."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import Path

from support.clusters.deployments import Deployment
from support.clusters.kills import kills_of
from support.frames.application import sink_application
from support.frames.outputs import FORMATS, outputs
from support.frames.scenario import Scenario, SinkResult, sink_feed


def formats() -> list[str]:
    """Return the formats in FORMATS, separated by commas; by default all."""
    return os.environ.get("FORMATS", ",".join(FORMATS)).split(",")


def run(
    deployment: Deployment,
    bootstrap: str,
    folder: Path,
    name: str,
    results: list[SinkResult],
    *,
    kills: int,
    chosen: Sequence[str] = (),
    kinds: Sequence[str] = (),
    url: str = "",
) -> list[str]:
    """Run one application and kill its parts; add to the table's rows and return what is wrong.

    Args:
        deployment: where the driver runs.
        bootstrap: the broker's address.
        folder: a folder of the test.
        name: names the application and its topic.
        results: the rows of the table.
        kills: how many kills.
        chosen: the formats; by default those in FORMATS.
        kinds: the kinds of kills; by default all of the deployment.
        url: the HDFS for files and tables; by default they are in the folder.
    """
    seed = int(os.environ.get("SEED", random.SystemRandom().randrange(10**6)))
    print(f"SEED={seed} KILLS={kills} FORMATS={','.join(chosen or formats())}", flush=True)
    chance = random.Random(seed)  # noqa: S311 (where and when to kill)
    feed = sink_feed(bootstrap, name)
    written = outputs(chosen or formats(), folder / "data", f"{url}/{name}" if url else "")
    with sink_application(deployment, bootstrap, folder, name, feed.topic, written) as app:
        possible = [kill for kill in kills_of(app) if not kinds or kill.name in kinds]
        scenario = Scenario(app, feed)
        results += scenario.results
        with feed:
            scenario.kill(possible, kills, chance)
            scenario.check()
        scenario.rewind()
        print(f"{deployment.name}: {dict(scenario.kinds)}", flush=True)
    return [wrong for each in scenario.results if (wrong := each.judge())]
