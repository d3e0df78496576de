// Finds the offsets of the beginning, the end, a time, or a shift, to fill them in as new offsets.

import { RequestError, foundOffsetsText } from "./api.js";
import { h } from "./dom.js";
import { canonical, member, parse } from "./json.js";

const TARGETS = { earliest: "the earliest", latest: "the latest", time: "a time", shift: "the current, shifted by" };

/** Input that cannot be a target. */
export class TargetError extends Error {}

/** Return the query of a target, given the value of its input. A time is in the browser's zone. Throws TargetError. */
export function targetQuery(kind, value) {
  if (kind === "shift") {
    if (!/^[+-]?\d+$/.test(value.trim())) throw new TargetError("Enter a number of records, such as -100.");
    return new URLSearchParams({ shiftBy: value.trim() });
  }
  if (kind !== "time") return new URLSearchParams({ to: kind });
  const time = new Date(value);
  if (Number.isNaN(time.getTime())) throw new TargetError("Enter a date and a time.");
  return new URLSearchParams({ to: time.toISOString() });
}

/**
 * Return the queries to send for a target. A sink cannot shift a partition without an offset, so its partitions with one are named,
 * in a query for each topic. ``partitions`` are JSON texts.
 */
export function queries(target, partitions, isSink) {
  if (!isSink || !target.has("shiftBy")) return [target];
  const byTopic = new Map();
  for (const each of partitions) {
    const partition = JSON.parse(each);
    const query = byTopic.get(partition.kafka_topic) ?? new URLSearchParams([...target, ["topic", partition.kafka_topic]]);
    query.append("partition", partition.kafka_partition);
    byTopic.set(partition.kafka_topic, query);
  }
  return [...byTopic.values()];
}

/** Return the found offsets in a response, by canonical partition: {partition, offset} as JSON texts. */
export function readFound(text) {
  return new Map(member(parse(text), "offsets").items.map((each) => {
    const partition = member(each, "partition");
    return [canonical(partition), { partition: partition.raw, offset: member(each, "offset").raw }];
  }));
}

export class OffsetPicker {
  /**
   * ``chosen()`` returns what the target is for: {partitions, isSink}, with the partitions that have an offset and match the filter.
   * ``found(offsets)`` is called with the result of ``readFound``.
   */
  constructor(name, { chosen, found }) {
    this.name = name;
    this.chosen = chosen;
    this.found = found;
    this.kind = h("select", { id: "offset-target", change: () => this.showInput() },
      Object.entries(TARGETS).map(([value, label]) => h("option", { value }, label)));
    this.time = h("input", { type: "datetime-local", step: "1", "aria-label": "Time, in your zone", hidden: true });
    this.shift = h("input", { type: "text", inputmode: "numeric", "aria-label": "Number of records", placeholder: "-100", hidden: true });
    this.problem = h("p.wrong", { role: "alert" });
    this.button = h("button", { type: "submit" }, "Fill in");
    this.element = h("form.add", { submit: (event) => { event.preventDefault(); this.find(); } },
      h("label", { for: "offset-target" }, "Set to"), this.kind, this.time, this.shift, this.button, this.problem,
      h("p.hint", null, "Fills in new offsets of the partitions that match the filter. Nothing is stored before you have reviewed them."));
  }

  showInput() {
    this.time.hidden = this.kind.value !== "time";
    this.shift.hidden = this.kind.value !== "shift";
    this.problem.textContent = "";
  }

  async find() {
    const { value: kind } = this.kind;
    this.problem.textContent = "";
    this.button.disabled = true;
    try {
      const { partitions, isSink } = this.chosen();
      const all = queries(targetQuery(kind, kind === "shift" ? this.shift.value : this.time.value), partitions, isSink);
      const texts = await Promise.all(all.map((query) => foundOffsetsText(this.name, query)));
      this.found(new Map(texts.flatMap((text) => [...readFound(text)])));
    } catch (error) {
      if (!(error instanceof RequestError) && !(error instanceof TargetError)) throw error;
      this.problem.textContent = error.message;
    } finally {
      this.button.disabled = false;
    }
  }
}
