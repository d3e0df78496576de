"""The page's module of patterns is made from the server's."""

from __future__ import annotations

import json
import re

from fastapi import FastAPI
from fastapi.testclient import TestClient

from sluiceway.config import masking
from sluiceway.provider.ui.page import Page


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
