// Shows the dead letter queue records of a connector with their keys and values, and replays chosen ones.

import { attempt } from "./actions.js";
import { RequestError, deadLetterRecords, replay } from "./api.js";
import { confirmed, say } from "./dialog.js";
import { h, replace } from "./dom.js";
import { UNKNOWN, exact, pretty, rootCause, time } from "./format.js";

const LIMITS = [20, 100, 500];
const SHORT = 200; // characters of a value that needs no scrolling
const CONTEXT = "__connect.errors.";

export class DeadLetters {
  constructor(name) {
    this.name = name;
    this.chosen = new Set();
    this.limit = h("select", { "aria-label": "Number of records", "data-key": "dead letters limit", change: () => this.load() },
      LIMITS.map((limit) => h("option", { value: limit }, `newest ${limit}`)));
    this.to = h("input", { type: "text", id: "replay-to", spellcheck: "false", placeholder: "the topics they came from" });
    this.button = h("button", { type: "button", "data-key": "replay", disabled: true, click: (event) => this.replay(event.currentTarget) }, "Replay");
    this.body = h("div");
    this.element = h("div", null, h("div.tools", null, this.limit, h("button", { type: "button", "data-key": "dead letters again", click: () => this.load() }, "Read again"),
      h("span.space"), h("label", { for: "replay-to" }, "Send to"), this.to, this.button), this.body);
  }

  async load() {
    replace(this.body, h("p.empty", null, "Reading from Kafka…"));
    try {
      this.draw(await deadLetterRecords(this.name, this.limit.value));
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      replace(this.body, h("p.empty", null, error.message));
    }
  }

  draw({ topic, count, records }) {
    this.chosen.clear();
    this.count();
    if (!records.length) return replace(this.body, h("p.empty", null, `Topic ${topic} holds no records of this connector.`));
    const boxes = records.map((record) => this.box(record));
    const all = h("input", { type: "checkbox", "aria-label": "Choose all records", change: () => {
      for (const box of boxes) if (box.checked !== all.checked) box.click();
    } });
    return replace(this.body, h("p", null, `${exact(count)} in topic ${topic}, with those of other connectors.`), h("div.scroll.letters", { tabindex: "0", role: "region", "aria-label": "Dead letter queue records" }, h("table", { "aria-label": "Dead letter queue records" },
      h("thead", null, h("tr", null, h("th", { scope: "col" }, all), ["Written", "Record", "Error", "Key", "Value", "Headers"].map((label) => h("th", { scope: "col" }, label)))),
      h("tbody", null, records.map((record, index) => row(record, boxes[index]))))));
  }

  box(record) {
    const { partition, offset } = record;
    const box = h("input", { type: "checkbox", "aria-label": `Choose ${partition}:${offset}`, change: () => {
      if (box.checked) this.chosen.add(record);
      else this.chosen.delete(record);
      this.count();
    } });
    return box;
  }

  count() {
    this.button.disabled = this.chosen.size === 0;
    this.button.textContent = this.chosen.size ? `Replay ${this.chosen.size}` : "Replay";
  }

  async replay(button) {
    const number = `${this.chosen.size} ${this.chosen.size === 1 ? "record" : "records"}`;
    const topic = this.to.value.trim() || null;
    const text = `They are sent to ${topic === null ? "the topics they came from" : `topic ${topic}`}, without the headers of the error. They also stay in the dead letter queue.`;
    if (!(await confirmed(`Replay ${number}?`, text, "Replay"))) return;
    const records = [...this.chosen].map(({ partition, offset }) => ({ partition, offset }));
    await attempt(button, `replay ${number} of ${this.name}`, async () => {
      const { sent } = await replay(this.name, records, topic);
      say(Object.entries(sent).map(([to, count]) => `${exact(count)} sent to ${to}`).join(", "));
      await this.load();
    });
    this.count();
  }
}

function row(record, box) {
  const context = Object.fromEntries(record.headers.filter(({ key }) => key.startsWith(CONTEXT)).map(({ key, value }) => [key.slice(CONTEXT.length), value?.text]));
  const origin = context.topic ? `${context.topic}-${context.partition ?? "?"}:${context.offset ?? "?"}` : UNKNOWN;
  return h("tr", { "data-record": `${record.partition}:${record.offset}` }, h("td", null, box), h("td.time", null, time(record.timestamp)),
    h("td", null, origin, h("small", null, `here ${record.partition}:${record.offset}`), record.replayed ? h("small", null, `replayed ${record.replayed} times`) : null),
    h("td.cause", null, error(context)), h("td", null, bytes(record.key)), h("td.cause", null, bytes(record.value)), h("td", null, headers(record.headers)));
}

function error(context) {
  const name = context["exception.class.name"];
  if (!name) return "No error headers (set errors.deadletterqueue.context.headers.enable=true)";
  const cause = rootCause(context["exception.stacktrace"]);
  return [`${context.stage ?? UNKNOWN}: ${name}`, context["exception.message"] ? `: ${context["exception.message"]}` : "", cause && h("small", null, `Cause: ${cause}`), context["exception.stacktrace"]
    ? h("details", null, h("summary", null, "Trace"), h("pre", { tabindex: "0" }, context["exception.stacktrace"])) : null];
}

function bytes(value) {
  if (value === null) return h("span.unknown", null, "null");
  return [h("code.data", { tabindex: value.text.length > SHORT ? "0" : null }, pretty(value.text)), value.format === "text" ? null : h("small", null, { json: "read by the converter", base64: "base64" }[value.format])];
}

function headers(all) {
  if (!all.length) return UNKNOWN;
  return h("details", null, h("summary", null, `${all.length} headers`),
    h("dl.keys", null, all.flatMap(({ key, value }) => [h("dt", null, h("code", null, key)), h("dd", null, bytes(value))])));
}
