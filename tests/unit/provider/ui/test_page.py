"""The page's module of patterns is made from the server's."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from sluiceway.config import masking
from sluiceway.provider.ui import page
from sluiceway.provider.ui.page import Page

STATIC = Path(page.__file__).parent / "static"
THIRD_PARTY = {"dagre.esm.js": "b0ddaf4af1417bec9bd89373a3a3987f081727d6cc6d95fc40dbf85a19bdf3b0"}  # @dagrejs/dagre 3.1.3


def test_the_page_hides_what_the_server_hides() -> None:
    app = FastAPI()
    app.mount("/ui", Page())
    answer = TestClient(app).get("/ui/masking.js")
    assert answer.headers["content-type"].startswith("text/javascript")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    found = dict(re.findall(r'^export const (\w+) = new RegExp\((".*"), "i"\);$', answer.text, re.MULTILINE))
    patterns = {name: json.loads(text) for name, text in found.items()}
    assert patterns == {name: getattr(masking, name) for name in ("HIDDEN_NAMES", "SHOWN_NAMES")}
    for pattern in patterns.values():
        assert "(?P" not in pattern
        assert re.sub(pattern, "", "x", flags=re.IGNORECASE) == "x"


@pytest.mark.parametrize(("name", "digest"), THIRD_PARTY.items())
def test_third_party_files_are_unchanged_and_have_their_license(name: str, digest: str) -> None:
    assert hashlib.sha256((STATIC / name).read_bytes()).hexdigest() == digest
    assert "Permission is hereby granted" in (STATIC / f"{name}.LEGAL.txt").read_text()


@pytest.mark.parametrize("file", sorted(STATIC.glob("*.js")), ids=lambda file: file.name)
def test_the_page_needs_no_code_that_its_policy_forbids(file: Path) -> None:
    assert not re.search(r"\beval\(|new Function\(|innerHTML|outerHTML|insertAdjacentHTML|document\.write", file.read_text())
