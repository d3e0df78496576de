// Draws a config as a form: a section for each group of keys, with the less important keys behind a button, and a list of the sections.

import { isProminent, sections } from "./config.js";
import { arrange, h } from "./dom.js";
import { Field } from "./field.js";

export class Form {
  /** ``changed(key, value)`` is called when the user changes a key; ``value`` is undefined for none. */
  constructor(changed) {
    this.changed = changed;
    this.fields = new Map();
    this.sections = new Map();
    this.added = new Set();
    this.locked = new Map();
    this.index = h("nav.index", { "aria-label": "Sections" });
    this.body = h("div.sections");
    this.newKey = h("input", { id: "new-key", type: "text", spellcheck: "false", autocomplete: "off", "aria-describedby": "new-key-hint" });
    this.adder = h("form.add", { hidden: true, submit: (event) => this.add(event) },
      h("label", { for: "new-key" }, "Add a key"), this.newKey, h("button", { type: "submit" }, "Add"),
      h("p.hint", { id: "new-key-hint" }, "For keys that no section lists, such as spark.executor.memory, or producer.override.linger.ms."));
    this.element = h("div.form", null, this.index, h("div", null, this.body, this.adder));
  }

  /** Do not let the user change a key. */
  lock(key, reason) {
    this.locked.set(key, reason);
  }

  /**
   * Show the result of a validation. ``known`` are keys that Connect does not have, and the choices of all: {own, choices}. ``all``:
   * show errors of keys that the user has not filled in yet, too.
   */
  show(infos, known, config, all) {
    this.last = [infos, known, config, all];
    this.adder.hidden = false;
    this.choices = known.choices;
    const found = sections(infos, known.own, [...Object.keys(config), ...this.added]);
    const shown = found.map(({ title, fields }) => this.section(title, fields, config, all));
    arrange(this.body, shown.map((section) => section.element));
    arrange(this.index, shown.map((section) => section.link));
  }

  /** Focus the first key with an error. */
  focusError() {
    const first = [...this.element.querySelectorAll("[data-field]")].map((element) => this.fields.get(element.dataset.field)).find((field) => field.hasErrors);
    if (!first) return;
    const details = first.element.closest("details");
    if (details) details.open = true;
    first.focus();
  }

  section(title, found, config, all) {
    const section = this.sections.get(title) ?? new Section(title);
    this.sections.set(title, section);
    const prominent = [], others = [];
    for (const each of found) {
      const field = this.field(each, config);
      field.update({ ...each, choices: this.choices[each.key] ?? [] }, config[each.key], all);
      if (this.locked.has(each.key)) field.lock(this.locked.get(each.key));
      (field.isProminent ? prominent : others).push(field);
    }
    section.show(prominent, others);
    return section;
  }

  field(each, config) {
    let field = this.fields.get(each.key);
    if (!field) {
      field = new Field(each.key, (value) => this.changed(each.key, value));
      field.isProminent = this.added.has(each.key) || isProminent(each, config); // decided once: a field that moves loses the focus
      this.fields.set(each.key, field);
    }
    return field;
  }

  add(event) {
    event.preventDefault();
    const key = this.newKey.value.trim();
    if (!key) return;
    this.newKey.value = "";
    this.added.add(key);
    this.show(...this.last);
    const field = this.fields.get(key);
    const details = field.element.closest("details");
    if (details) details.open = true;
    field.element.hidden = false;
    field.focus();
  }
}

class Section {
  constructor(title) {
    this.prominent = h("div.fields");
    this.others = h("div.fields");
    this.summary = h("summary", { "data-key": `more ${title}` });
    this.details = h("details", null, this.summary, this.others);
    this.element = h("fieldset", { "data-section": title, tabindex: "-1" }, h("legend", null, title), this.prominent, this.details);
    this.wrong = h("b.failed");
    this.link = h("button.link", { type: "button", "data-key": `section ${title}`, click: () => this.open() }, title, this.wrong);
  }

  /** Show the section to the user: the Tab key goes on from here. */
  open() {
    this.element.scrollIntoView({ block: "start" });
    this.element.focus({ preventScroll: true });
  }

  show(prominent, others) {
    arrange(this.prominent, prominent.map((field) => field.element));
    arrange(this.others, others.map((field) => field.element));
    const visible = others.filter((field) => !field.element.hidden);
    this.details.hidden = visible.length === 0;
    this.summary.textContent = `${visible.length} ${prominent.length ? "more" : "optional"} ${visible.length === 1 ? "key" : "keys"}`;
    if (others.some((field) => field.errors.childElementCount)) this.details.open = true;
    this.element.hidden = this.link.hidden = visible.length === 0 && prominent.every((field) => field.element.hidden);
    const wrong = [...prominent, ...others].reduce((sum, field) => sum + field.errors.childElementCount, 0);
    this.wrong.textContent = wrong ? ` ${wrong} ${wrong === 1 ? "error" : "errors"}` : "";
  }
}
