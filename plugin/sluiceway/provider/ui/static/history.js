// Shows who changed a connector, when, from where, and what; and restores the config of an earlier version.

import { REFUSED } from "./actions.js";
import { RequestError, changesText, details, rollBack } from "./api.js";
import { HIDDEN } from "./config.js";
import { say } from "./dialog.js";
import { h, replace } from "./dom.js";
import { UNKNOWN, exact, time } from "./format.js";
import { member, parse } from "./json.js";
import { Review, changesTable } from "./review.js";

const KEYS = 3; // that a row names

/** Return the changes in a response, newest first. Offsets in them are JSON texts, since numbers in them may exceed those of JavaScript. */
export function readChanges(text) {
  const spelled = member(parse(text), "history").items;
  return JSON.parse(text).history.map((change, index) => (change.offsets ? { ...change, offsets: readOffsets(spelled[index]) } : change)).reverse();
}

function readOffsets(change) {
  const raw = (each, key) => member(each, key).raw;
  const orNone = (value) => (value === "null" ? undefined : value);
  return member(change, "offsets").items.map((each) => ({ key: raw(each, "partition"), before: orNone(raw(each, "before")), after: orNone(raw(each, "after")) }));
}

/** Return a change in a line. */
export function summary({ change, edits, state, partitions }) {
  if (change === "state") return `state: ${state.before} → ${state.after}`;
  if (change === "offsets") return `offsets of ${exact(partitions)} ${partitions === 1 ? "partition" : "partitions"}`;
  if (change !== "config" || !edits.length) return change;
  const keys = edits.slice(0, KEYS).map(({ key }) => key).join(", ");
  return `config: ${keys}${edits.length > KEYS ? ` and ${edits.length - KEYS} more` : ""}`;
}

/** Return what changed: an array of {key, before, after}, undefined where there is no value. */
export function editsOf({ change, edits, state, offsets, config }) {
  if (change === "offsets") return offsets;
  const ofConfig = change === "created" ? Object.entries(config).map(([key, after]) => ({ key, after })) : edits ?? [];
  const all = state ? [...ofConfig, { key: "target state", ...state }] : ofConfig;
  return all.map(({ key, before, after }) => ({ key, before: before ?? undefined, after: after ?? undefined }));
}

/** Return the config of a version with the current secrets, which the server puts in. Both configs are masked. */
export function restored(config, current) {
  return Object.fromEntries(Object.entries(config).map(([key, value]) => [key, value === HIDDEN ? current[key] ?? value : value]));
}

/** Return the name of a client. That of a browser is long, and says little. */
export function clientName(client) {
  return client?.startsWith("Mozilla/") ? "browser" : client;
}

export class History {
  constructor(name, { left }) {
    this.name = name;
    this.review = new Review();
    this.body = h("div.body", null, h("p.empty", null, "Reading from Kafka…"));
    this.element = h("section.history", { "aria-label": `History of ${name}` }, h("button.back", { type: "button", click: left }, `‹ ${name}`),
      h("header", null, h("h1", null, `History of ${name}`), h("button", { type: "button", click: () => this.load() }, "Read again")), this.body);
    this.load();
  }

  async load() {
    try {
      const [text, found] = await Promise.all([changesText(this.name), this.current()]);
      this.found = found;
      this.draw(readChanges(text));
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      replace(this.body, h("p.empty", null, error.message));
    }
  }

  /** Return the masked config that the connector has now, and whether the user may change it. A deleted connector has none. */
  async current() {
    try {
      const { config, may_edit: mayEdit } = await details(this.name);
      return { config, mayEdit, exists: true };
    } catch (error) {
      if (!(error instanceof RequestError) || error.status !== 404) throw error;
      return { config: {}, mayEdit: true, exists: false };
    }
  }

  draw(changes) {
    if (!changes.length) return replace(this.body, h("p.empty", null, "No change of this connector is recorded."));
    return replace(this.body, h("div.scroll", null, h("table", { "aria-label": "Changes, newest first" },
      h("thead", null, h("tr", null, ["Version", "Time", "User", "From", "Change", "Actions"].map((label) => h("th", { scope: "col" }, label)))),
      h("tbody", null, changes.map((change) => this.row(change))))));
  }

  row(change) {
    const { version, user, authenticated, address, client, note } = change;
    const from = [address, clientName(client), note].filter(Boolean).join(", ") || UNKNOWN;
    return h("tr", { "data-version": version }, h("th", { scope: "row" }, version), h("td.time", null, time(change.timestamp)),
      h("td", null, user ?? UNKNOWN, user && !authenticated ? h("small", null, "not authenticated") : null),
      h("td", { title: client }, from), h("td.change", null, what(change)), h("td.actions", null, this.button(change)));
  }

  button({ version, config }) {
    if (!config) return null;
    const { mayEdit } = this.found;
    return h("button.small", {
      type: "button", "data-key": `roll back ${version}`, "aria-label": `Roll back to version ${version}`, disabled: !mayEdit, title: mayEdit ? null : REFUSED,
      click: () => this.rollBack(version, config),
    }, "Roll back");
  }

  async rollBack(version, config) {
    try {
      this.found = await this.current();
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      return say(error.message, true);
    }
    const { config: before, exists } = this.found;
    const saved = await this.review.ask({
      title: `Roll ${this.name} back to version ${version}?`, before, after: restored(config, before), isEdit: exists, show: (_, value) => value,
      label: exists ? "Roll back" : "Create again", save: () => rollBack(this.name, version),
    });
    if (!saved) return undefined;
    say(`${this.name}: has the config of version ${version}.`);
    return this.load();
  }
}

function what(change) {
  const found = editsOf(change);
  if (change.change === "state" || !found.length) return summary(change);
  const body = h("div");
  const more = change.change === "offsets" ? change.partitions - found.length : 0;
  const draw = () => {
    if (body.childElementCount) return;
    body.append(changesTable(found, (_, value) => value, { isEdit: change.change !== "created", label: `Changes of version ${change.version}` }),
      more ? h("p", null, `${exact(more)} more partitions are not recorded.`) : "");
  };
  return h("details", { toggle: draw }, h("summary", { "data-key": `version ${change.version}` }, summary(change)), body);
}
