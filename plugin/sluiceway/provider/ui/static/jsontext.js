// Draws a config as JSON text, with the findings beside the lines.

import { h } from "./dom.js";

export class JsonText {
  /** ``changed(text)`` is called when the user changes the text. */
  constructor(changed) {
    this.byLine = new Map();
    this.text = h("textarea", {
      id: "json", spellcheck: "false", wrap: "off", autocomplete: "off", "aria-label": "Config as JSON", "aria-describedby": "json-findings",
      input: () => { this.fit(); changed(this.text.value); },
    });
    this.numbers = h("ol.numbers-of-lines", { "aria-hidden": "true" });
    this.notes = h("ol.notes", { "aria-hidden": "true" });
    this.findings = h("ul.findings", { id: "json-findings" });
    this.element = h("div.json", null, h("div.lines", null, this.numbers, this.text, this.notes), this.findings);
  }

  set(text) {
    if (this.text.value !== text) this.text.value = text;
    this.fit();
  }

  /** Show findings, which are {line, message}, sorted by line. */
  show(findings) {
    const key = JSON.stringify(findings);
    if (key === this.shown) return;
    this.shown = key;
    this.byLine = grouped(findings);
    this.findings.replaceChildren(...findings.map((each) => h("li", null,
      h("button.link", { type: "button", click: () => this.goTo(each.line) }, `Line ${each.line}`), ` ${each.message}`)));
    this.text.setAttribute("aria-invalid", String(findings.length > 0));
    this.fit();
  }

  /** Make the text as high as its lines, so that they stay beside their notes. */
  fit() {
    const count = this.text.value.split("\n").length;
    this.text.rows = count + 1;
    const lines = Array.from({ length: count }, (_, index) => index + 1);
    this.numbers.replaceChildren(...lines.map((line) => h(this.byLine.has(line) ? "li.has-error" : "li", null, String(line))));
    this.notes.replaceChildren(...lines.map((line) => {
      const text = (this.byLine.get(line) ?? []).map((each) => each.message).join(" ");
      return h("li", { title: text || null }, text);
    }));
  }

  focusError() {
    const first = this.byLine.keys().next().value;
    if (first) this.goTo(first);
  }

  goTo(line) {
    const lines = this.text.value.split("\n");
    const start = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
    this.text.focus();
    this.text.setSelectionRange(start, start + (lines[line - 1] ?? "").length);
  }
}

function grouped(findings) {
  const found = new Map();
  for (const each of findings) found.set(each.line, [...(found.get(each.line) ?? []), each]);
  return found;
}
