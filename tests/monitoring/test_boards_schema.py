"""The boards against the types of Grafana's schema library, by TypeScript's compiler: ``make test-metrics`` installs both."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.docker_files import ROOT
from support.prometheus import BOARDS

MODULES = Path(os.environ.get("GRAFANA_SCHEMA", ROOT / "build" / "grafana-schema")) / "node_modules"
TYPES = MODULES / "@grafana" / "schema" / "dist" / "types" / "raw"
PANELS = {"timeseries": "timeseries", "stat": "stat", "table": "table"}
PLAIN = """\
type Plain<T> = T extends string ? `${T}` : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
"""

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not TYPES.exists(), reason="no @grafana/schema: make test-metrics installs it"),
]


def program(board: dict[str, Any]) -> str:
    """Return TypeScript in which the board, and its panels' options and field configs, have the types of Grafana's schema.

    Objects in JSON have texts where the types have enumerations, so ``Plain`` turns these into texts.
    """
    text = [f"import type {{ Dashboard, Panel, RowPanel }} from '{TYPES}/dashboard/x/types.gen';"]
    text += [f"import type * as {name} from '{TYPES}/composable/{name}/panelcfg/x/types.gen';" for name in PANELS.values()]
    text.append(PLAIN)
    panels = board.pop("panels")
    text.append(f"export const board: Plain<Dashboard> = {json.dumps(board)};")
    for panel in panels:
        number, kind = panel["id"], panel["type"]
        if kind == "row":
            text.append(f"export const panel{number}: Plain<RowPanel> = {json.dumps(panel)};")
            continue
        options = panel.pop("options")
        custom = panel["fieldConfig"]["defaults"].pop("custom", None)
        text.append(f"export const panel{number}: Plain<Panel> = {json.dumps(panel)};")
        text.append(f"export const options{number}: Partial<Plain<{PANELS[kind]}.Options>> = {json.dumps(options)};")
        if custom is not None:
            text.append(f"export const custom{number}: Partial<Plain<{PANELS[kind]}.FieldConfig>> = {json.dumps(custom)};")
    return "\n".join(text) + "\n"


def compiled(folder: Path, source: str) -> subprocess.CompletedProcess[str]:
    file = folder / "board.ts"
    file.write_text(source)
    command = [
        "node",
        str(MODULES / "typescript" / "bin" / "tsc"),
        "--noEmit",
        "--strict",
        "--skipLibCheck",
        "--target",
        "es2022",
    ]
    return subprocess.run([*command, "--module", "nodenext", str(file)], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_a_board_has_the_types_of_grafanas_schema(path: Path, tmp_path: Path) -> None:
    done = compiled(tmp_path, program(json.loads(path.read_text())))
    assert done.returncode == 0, done.stdout


def test_a_wrong_board_is_found(tmp_path: Path) -> None:
    board = json.loads(BOARDS[0].read_text())
    board["refresh"] = 30
    board["panels"][0]["options"]["colorMode"] = "gaudy"
    done = compiled(tmp_path, program(board))
    assert "Type 'number' is not assignable to type 'string'" in done.stdout
    assert "gaudy" in done.stdout
