"""A virtual environment for packages that a test installs: it has those of the tests, and installs into itself."""

from __future__ import annotations

import sys
import sysconfig
import venv
from pathlib import Path

_COMMANDS = {"pip": "pip._internal.cli.main", "pytest": "pytest", "sluiceway": "sluiceway.cli.main"}


def make_environment(folder: Path) -> Path:
    """Make the environment in a folder, and return the folder of its commands, for PATH."""
    venv.create(folder, symlinks=True)
    ours = Path(sysconfig.get_path("purelib"))
    own = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder), "platbase": str(folder)}))
    # As its last line, so that its own packages come first; a path alone would leave out editable installations.
    (own / "zz_of_the_tests.pth").write_text(f"import site; site.addsitedir({str(ours)!r})\n", encoding="utf-8")
    commands = folder / "bin"
    for name, module in _COMMANDS.items():
        script = f"#!{commands / 'python'}\nimport sys\nfrom {module} import main\nsys.exit(main())\n"
        (commands / name).write_text(script, encoding="utf-8")
        (commands / name).chmod(0o755)
    assert Path(sys.prefix) in ours.parents, "the tests run in a virtual environment"
    return commands
