// Edits the offsets of a stopped connector. Offsets stay text, since numbers in them may exceed those of JavaScript.

import { RequestError, alterOffsets, details, offsetsText, resetOffsets } from "./api.js";
import { REFUSED, attempt } from "./actions.js";
import { confirmed, say } from "./dialog.js";
import { h, replace } from "./dom.js";
import { exact } from "./format.js";
import { JsonError, canonical, member, parse } from "./json.js";
import { OffsetPicker } from "./offsetpicker.js";
import { Review } from "./review.js";
import { stateLabel } from "./schedule.js";

const SHOWN = 100;

/** Return the offsets in a response: an array of {partition, offset} as JSON texts. */
export function readOffsets(text) {
  const entries = member(parse(text), "offsets").items;
  return entries.map((entry) => ({ partition: member(entry, "partition").raw, offset: member(entry, "offset").raw }));
}

/** Return where the position of a source is, for users, if a response says that it is not in the offsets; else null. */
export function readPosition(text) {
  return parse(text).members.find(({ key }) => key === "position")?.value.text ?? null;
}

/** Return an offset that a user entered as JSON text: an object, or the number of a sink's offset. Throws JsonError. */
export function readOffset(text, isSink) {
  if (isSink && /^\d+$/.test(text.trim())) return `{"kafka_offset":${BigInt(text.trim())}}`;
  const value = parse(text);
  if (value.kind !== "object") throw new JsonError(1, isSink ? "An offset is a number." : "An offset is a JSON object.");
  return value.raw;
}

/** Return an offset as a user enters it: the number of a sink's offset, or JSON text. */
export function asEntered(offset, isSink) {
  return isSink ? member(parse(offset), "kafka_offset").raw : offset;
}

/** Return the body of a request that sets offsets; ``edits`` maps partitions to offsets, both as JSON texts, null to remove one. */
export function body(edits) {
  return `{"offsets":[${[...edits].map(([partition, offset]) => `{"partition":${partition},"offset":${offset}}`).join(",")}]}`;
}

export class OffsetsEditor {
  constructor(name, { done, left }) {
    this.name = name;
    this.done = done;
    this.edits = new Map();
    this.entered = new Map(); // what is in the inputs, so that the filter does not lose it
    this.problems = new Map();
    this.added = [];
    this.review = new Review();
    this.filter = h("input.filter", { type: "search", placeholder: "Filter by partition", "aria-label": "Filter partitions", input: () => this.draw() });
    this.body = h("div.body", null, h("p.empty", null, "Reading from Kafka…"));
    this.failure = h("p.banner", { role: "alert", hidden: true });
    this.notice = h("p.banner", { role: "note", hidden: true });
    this.saving = [
      h("button.danger", { type: "button", click: (event) => this.reset(event.currentTarget) }, "Reset all"),
      h("button.main", { type: "button", click: () => this.check() }, "Review"),
    ];
    this.picker = new OffsetPicker(name, { chosen: () => this.chosen(), found: (offsets) => this.fillIn(offsets) });
    this.element = h("section.offsets", { "aria-label": `Offsets of ${name}` },
      h("header", null, h("h1", null, `Offsets of ${name}`), this.filter), this.notice, this.failure, this.picker.element, this.body,
      h("footer", null, this.saving[0], h("span.space"), h("button", { type: "button", click: left }, "Cancel"), this.saving[1]));
    this.load();
  }

  async load() {
    try {
      const [text, found] = await Promise.all([offsetsText(this.name), details(this.name)]);
      this.entries = readOffsets(text);
      this.allow(found, readPosition(text));
    } catch (error) {
      return this.fail(error);
    }
    this.isSink = this.entries.some(({ partition }) => partition.includes('"kafka_topic"'));
    return this.draw();
  }

  /** Say why offsets cannot be saved now, and keep the user from trying. ``elsewhere`` is where the position is instead, or null. */
  allow({ target, shown, may_edit: mayEdit }, elsewhere) {
    const reason = elsewhere ?? (mayEdit ? (target === "STOPPED" ? null : `Offsets can be saved only while the connector is stopped; it is ${stateLabel(shown)} now. Stop it first.`) : `${REFUSED}.`);
    this.notice.textContent = reason ?? "";
    this.notice.hidden = reason === null;
    for (const button of this.saving) button.disabled = reason !== null;
  }

  fail(error) {
    if (!(error instanceof RequestError)) throw error;
    this.failure.textContent = error.message;
    this.failure.hidden = false;
  }

  matches(partition) {
    return this.filter.value.toLowerCase().split(/\s+/).every((word) => partition.toLowerCase().includes(word));
  }

  /** Return what the picker finds offsets for. */
  chosen() {
    const partitions = this.entries.filter(({ partition, offset }) => offset !== undefined && this.matches(partition)).map(({ partition }) => partition);
    return { partitions, isSink: this.isSink };
  }

  /** Enter found offsets. Partitions without a stored offset are added. */
  fillIn(found) {
    const known = new Map([...this.entries, ...this.added].map((entry) => [canonical(parse(entry.partition)), entry]));
    let filled = 0;
    for (const [id, { partition: spelled, offset }] of found) {
      const { partition, offset: before } = known.get(id) ?? { partition: spelled };
      if (!this.matches(partition)) continue;
      if (!known.has(id)) this.entries.push({ partition });
      this.isSink ||= partition.includes('"kafka_topic"');
      filled += this.enter(partition, before, offset);
    }
    this.draw();
    say(`${exact(filled)} new ${filled === 1 ? "offset" : "offsets"} filled in. Review them to store them.`);
  }

  /** Enter an offset, null to remove it. Return whether it differs from the one before. */
  enter(partition, before, offset) {
    this.entered.delete(partition);
    this.edits.delete(partition);
    this.problems.delete(partition);
    const isRemoved = offset === "null";
    if (isRemoved ? before === undefined : before !== undefined && canonical(parse(before)) === canonical(parse(offset))) return false;
    this.edits.set(partition, isRemoved ? null : offset);
    if (!isRemoved) this.entered.set(partition, asEntered(offset, this.isSink));
    return true;
  }

  draw() {
    const found = this.entries.filter(({ partition }) => this.matches(partition));
    const rows = [...found.slice(0, SHOWN), ...this.added].map((entry) => this.row(entry));
    replace(this.body,
      h("table", { "aria-label": "Offsets" },
        h("thead", null, h("tr", null, ["Partition", "Offset", "New offset", "Remove"].map((label) => h("th", { scope: "col" }, label)))),
        h("tbody", null, rows.length ? rows : h("tr", null, h("td", { colspan: "4" }, "The connector has no offsets.")))),
      found.length > SHOWN ? h("p", null, `${exact(found.length - SHOWN)} more are not shown. Filter them.`) : "",
      this.adder());
  }

  row({ partition, offset }) {
    const problem = h("p.wrong");
    const showProblem = () => {
      problem.textContent = this.problems.get(partition) ?? "";
      input.setAttribute("aria-invalid", String(this.problems.has(partition)));
    };
    const input = h("input.width-medium", {
      type: "text", spellcheck: "false", "aria-label": `New offset of ${partition}`, placeholder: this.isSink ? "" : offset, "data-key": `offset ${partition}`,
      input: () => {
        this.entered.set(partition, input.value);
        this.edit(partition, input.value);
        showProblem();
      },
    });
    showProblem();
    const isRemoved = this.edits.get(partition) === null;
    input.value = this.entered.get(partition) ?? "";
    input.disabled = isRemoved;
    const remove = h("input", {
      type: "checkbox", checked: isRemoved, "aria-label": `Remove the offset of ${partition}`, "data-key": `remove ${partition}`,
      change: () => {
        if (remove.checked) { this.edits.set(partition, null); this.problems.delete(partition); } else this.edit(partition, input.value);
        input.disabled = remove.checked;
        showProblem();
      },
    });
    return h("tr", { "data-partition": partition }, h("th", { scope: "row" }, h("code", null, partition)),
      h("td", null, offset === undefined ? h("span.unknown", null, "not set") : h("code", null, offset)), h("td", null, input, problem), h("td", null, remove));
  }

  adder() {
    const example = this.isSink ? '{"kafka_topic":"orders","kafka_partition":0}' : '{"filename":"/data/in.txt"}';
    const input = h("input.width-long", { id: "new-partition", type: "text", spellcheck: "false", placeholder: example });
    const problem = h("p.wrong");
    return h("form.add", { submit: (event) => {
      event.preventDefault();
      try {
        const value = parse(input.value);
        if (value.kind !== "object") throw new JsonError(1, "A partition is a JSON object.");
        this.isSink ||= value.raw.includes('"kafka_topic"');
        if (![...this.entries, ...this.added].some(({ partition }) => partition === value.raw)) this.added.push({ partition: value.raw });
        this.draw();
        this.body.querySelector("tbody tr:last-child input")?.focus();
      } catch (error) {
        if (!(error instanceof JsonError)) throw error;
        problem.textContent = error.message;
      }
    } }, h("label", { for: "new-partition" }, "Add a partition"), input, h("button", { type: "submit" }, "Add"), problem);
  }

  edit(partition, text) {
    this.problems.delete(partition);
    this.edits.delete(partition);
    if (text.trim() === "") return;
    try {
      this.edits.set(partition, readOffset(text, this.isSink));
    } catch (error) {
      if (!(error instanceof JsonError)) throw error;
      this.problems.set(partition, error.message);
    }
  }

  async check() {
    if (this.problems.size) {
      return this.focusProblem();
    }
    const before = Object.fromEntries(this.entries.map(({ partition, offset }) => [partition, offset]));
    const after = { ...before };
    for (const [partition, offset] of this.edits) {
      if (offset === null) delete after[partition];
      else after[partition] = offset;
    }
    let message = "";
    const saved = await this.review.ask({
      title: `Set offsets of ${this.name}?`, before, after, isEdit: true, show: (_, offset) => offset,
      save: async () => { ({ message } = await alterOffsets(this.name, body(this.edits))); },
    });
    if (!saved) return undefined;
    say(message);
    return this.done();
  }

  /** Focus the first offset that cannot be read. It may not match the filter, or be behind the first rows. */
  focusProblem() {
    for (const filter of ["", this.problems.keys().next().value]) {
      this.filter.value = filter;
      this.draw();
      const input = this.body.querySelector('[aria-invalid="true"]');
      if (input) return input.focus();
    }
    return undefined;
  }

  async reset(button) {
    const text = "The connector begins again: a source as if it had read nothing, a sink by the consumer's auto.offset.reset.";
    if (!(await confirmed(`Reset all offsets of ${this.name}?`, text, "Reset"))) return;
    await attempt(button, `reset the offsets of ${this.name}`, async () => {
      say((await resetOffsets(this.name)).message);
      this.done();
    });
  }
}
