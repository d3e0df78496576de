// Edits a connector's config, as a form or as JSON, with the findings of the REST API's validation; and saves it after a review.

import { setBy } from "./actions.js";
import { RequestError, config as configOf, create, knownKeys, putConfig, validate } from "./api.js";
import { asText, findingsByLine, fromText, shown, withSecrets } from "./config.js";
import { confirmed, say } from "./dialog.js";
import { h, replace } from "./dom.js";
import { Form } from "./form.js";
import { shortClass } from "./format.js";
import { JsonText } from "./jsontext.js";
import { Preview } from "./preview.js";
import { Review } from "./review.js";

const TYPING_MILLISECONDS = 250;
const SLOW_MILLISECONDS = 1000; // some connectors ask their system, and wait for it
const NAME = "name", CLASS = "connector.class", DAG = "airflow.dag", TASK = "airflow.config.task";
const TITLES = {
  create: ({ plugin }) => `New ${shortClass(plugin)}`,
  clone: ({ name }) => `Clone of ${name}`,
  edit: ({ name }) => `Edit ${name}`,
};

export class Editor {
  /** ``route`` is that of view create (a ``plugin``), edit or clone (a ``name``); ``done(name)`` is called after saving, ``left()`` after cancelling. */
  constructor(route, { done, left }) {
    this.route = route;
    this.done = done;
    this.left = left;
    this.config = {};
    this.base = {};
    this.problems = []; // findings in the JSON text, which has no config then
    this.asked = 0;
    this.all = false;
    this.form = new Form((key, value) => this.changeKey(key, value));
    this.json = new JsonText((text) => this.changeText(text));
    this.review = new Review();
    this.preview = new Preview();
    this.status = h("p.status", { role: "status" }, "Loading…");
    this.failure = h("p.banner", { role: "alert", hidden: true });
    this.notice = h("p.banner", { role: "note", hidden: true });
    this.holder = h("div.holder");
    this.ways = h("div.buttons", { role: "group", "aria-label": "Edit as" }, this.way("Form"), this.way("JSON"));
    this.element = h("section.editor", { "aria-label": TITLES[route.view](route) },
      h("header", null, h("h1", null, TITLES[route.view](route)), this.ways), this.notice, this.failure, this.holder, this.footer());
    this.choose("Form");
    this.load();
  }

  way(label) {
    return h("button", { type: "button", "data-way": label, click: () => this.choose(label) }, label);
  }

  footer() {
    this.state = this.route.view === "edit" ? null : h("select", { id: "initial-state" },
      ["Running", "Paused", "Stopped"].map((state) => h("option", { value: state.toUpperCase() }, state)));
    this.reviewing = h("button.main", { type: "button", click: () => this.check() }, "Review");
    return h("footer", null, this.status, this.state && h("label", { for: "initial-state" }, "Start as "), this.state,
      h("button", { type: "button", click: () => this.cancel() }, "Cancel"),
      h("button", { type: "button", click: () => this.showPreview() }, "Preview"),
      this.reviewing);
  }

  async load() {
    try {
      this.base = this.route.view === "create" ? {} : await configOf(this.route.name);
      Object.assign(this, await knownKeys(this.route.plugin ?? this.base[CLASS] ?? ""));
    } catch (error) {
      return this.fail(error);
    }
    const { [NAME]: name, [DAG]: dag, [TASK]: task, ...others } = this.base; // that DAG does not run the clone
    const initial = { create: { [CLASS]: this.route.plugin }, clone: others, edit: this.base };
    this.config = { ...initial[this.route.view] };
    this.initial = JSON.stringify(this.config);
    const isSet = this.route.view === "edit" && task !== undefined;
    if (isSet) replace(this.notice, `${setBy(dag, task)}. A change here would be undone, and is refused.`);
    this.notice.hidden = !isSet;
    this.reviewing.disabled = isSet;
    if (this.route.view === "edit") this.form.lock(NAME, "The name of a connector cannot be changed. Clone it instead.");
    this.form.lock(CLASS, "To use another class, choose it in the catalogue of plugins, or edit the JSON.");
    if (this.chosen === "JSON") this.json.set(asText(this.config, this.types()));
    await this.validate();
    return this.holder.querySelector("input:not([readonly]), textarea")?.focus();
  }

  choose(way) {
    if (way === "Form" && this.problems.length) {
      this.json.focusError();
      return say("Correct the JSON first: the form cannot show it.", true);
    }
    this.chosen = way;
    for (const button of this.ways.children) button.setAttribute("aria-pressed", String(button.dataset.way === way));
    if (way === "JSON") this.json.set(asText(this.config, this.types()));
    this.holder.replaceChildren((way === "JSON" ? this.json : this.form).element);
    return this.show();
  }

  changeKey(key, value) {
    if (value === undefined) delete this.config[key];
    else this.config[key] = value;
    this.soon();
  }

  changeText(text) {
    const { config, lines, findings } = fromText(text);
    this.lines = lines;
    this.problems = findings;
    if (config !== null) this.config = withSecrets(config, { ...this.base, ...this.config });
    this.show();
    if (config !== null) this.soon();
  }

  soon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.validate(), TYPING_MILLISECONDS);
  }

  /** Validate the config, and return whether the result is shown: not if it failed, or if a newer validation has started meanwhile. */
  async validate() {
    clearTimeout(this.timer);
    const mine = ++this.asked;
    const config = { ...this.config };
    this.element.setAttribute("aria-busy", "true");
    const slow = setTimeout(() => { this.status.textContent = "Validating…"; }, SLOW_MILLISECONDS);
    try {
      const infos = await validate(config[CLASS] ?? "", config);
      if (mine !== this.asked) return false;
      this.infos = infos;
      this.failure.hidden = true;
      this.show();
      return true;
    } catch (error) {
      if (mine === this.asked) this.fail(error);
      return false;
    } finally {
      clearTimeout(slow);
      if (mine === this.asked) this.element.setAttribute("aria-busy", "false");
    }
  }

  fail(error) {
    if (!(error instanceof RequestError)) throw error;
    this.infos = null;
    this.failure.textContent = error.message;
    this.failure.hidden = false;
    this.status.textContent = "";
    this.json.show(this.problems);
  }

  show() {
    if (!this.infos) return this.json.show(this.problems);
    this.form.show(this.infos, this, this.config, this.all);
    const { lines } = this.problems.length ? this : fromText(this.json.text.value);
    this.json.show(this.problems.length ? this.problems : findingsByLine(this.infos, lines));
    this.status.textContent = this.summary();
    return undefined;
  }

  /** Return the number of errors; a required key that is not filled in yet is none before a review. */
  summary() {
    const counted = (number, what) => `${number} ${what}${number === 1 ? "" : "s"}`;
    if (this.problems.length) return counted(this.problems.length, "error");
    const wrong = this.infos.configs.filter(({ value }) => value?.errors.length);
    const left = this.all ? [] : wrong.filter(({ value }) => !(value.name in this.config));
    const errors = wrong.filter((each) => !left.includes(each)).reduce((sum, { value }) => sum + value.errors.length, 0);
    if (errors) return counted(errors, "error");
    return left.length ? `${counted(left.length, "key")} to fill in` : "No errors";
  }

  /** Validate once more, then show the changes, or the first error. */
  async check() {
    this.all = true;
    if (this.problems.length) return this.json.focusError();
    if (!(await this.validate())) return undefined;
    if (this.infos.error_count) return (this.chosen === "JSON" ? this.json : this.form).focusError();
    const isEdit = this.route.view === "edit";
    try {
      const current = isEdit ? await configOf(this.route.name) : {};
      const hasChanged = isEdit && JSON.stringify(current) !== JSON.stringify(this.base);
      const name = this.config[NAME];
      const saved = await this.review.ask({
        title: isEdit ? `Save ${name}?` : `Create ${name}?`, before: current, after: this.config, isEdit, hasChanged,
        show: (key, value) => shown(key, value, this.types()[key]),
        save: () => (isEdit ? putConfig(name, this.config) : create(name, this.config, this.state.value)),
      });
      if (!saved) return undefined;
      say(`${name}: ${isEdit ? "saved" : "created"}.`);
      return this.done(name);
    } catch (error) {
      return this.fail(error);
    }
  }

  /** Run what was entered on a few records. */
  showPreview() {
    if (this.problems.length) return this.json.focusError();
    return this.preview.open(`Preview of ${this.config[NAME] ?? shortClass(this.config[CLASS] ?? "")}`, () => ({ ...this.config }));
  }

  async cancel() {
    if (this.isChanged() && !(await confirmed("Discard the changes?", "What you have entered is lost.", "Discard"))) return;
    this.left();
  }

  isChanged() {
    return this.problems.length > 0 || (this.initial !== undefined && JSON.stringify(this.config) !== this.initial);
  }

  types() {
    const found = (this.infos?.configs ?? []).filter(({ definition }) => definition).map(({ definition }) => [definition.name, definition.type]);
    return Object.fromEntries(found);
  }
}
