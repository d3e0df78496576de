// Draws the answer to a preview: each record before and after each transform, the bytes that would be written, and what failed.

import { h } from "./dom.js";
import { UNKNOWN, exact, pretty, shortClass, time } from "./format.js";

const PARTS = ["where", "key", "value", "headers"];

/** Return the elements of an answer, and its summary in a sentence. */
export function drawn(answer) {
  const { records, target, warnings, note, error, start } = answer;
  if (answer.validation) return { status: "The config has errors, so it was not run.", result: [findings(answer.validation)] };
  const count = `${records.length} ${records.length === 1 ? "record" : "records"}`;
  const failed = records.filter((record) => record.error).length;
  const from = start === "beginning" ? "the beginning" : "the stored offsets";
  const status = [`${count} from ${from}. Nothing was written.`, failed ? `${failed} failed.` : "", note].filter(Boolean).join(" ");
  return { status, result: [error && problem(error), ...warnings.map((each) => h("p.banner", null, each)), targetOf(target), ...records.map(section)].filter(Boolean) };
}

/**
 * Return the stages of a record: {stage, outcome, image}. ``image`` is what the record is after a stage, null if it stays the same or
 * is dropped.
 */
export function stagesOf(record) {
  const stages = [];
  const add = (stage, image, outcome = null) => stages.push({ stage, image, outcome });
  if (record.message) add("In Kafka", record.message);
  if (record.before) add(record.message ? "Converted" : "Read", record.before);
  for (const { transform, outcome, records } of record.steps) {
    if (records) for (const image of records) add(transform, image, outcome);
    else add(transform, null, outcome);
  }
  for (const image of record.written ?? []) add("Written to Kafka", image);
  for (const image of record.put ?? []) add("Given to put()", image);
  return stages;
}

/** Return the parts of an image that differ from those of the image before it. */
export function changed(image, before) {
  return PARTS.filter((part) => JSON.stringify(cellOf(image, part)) !== JSON.stringify(cellOf(before, part)));
}

function cellOf(image, part) {
  return part === "where" ? [image.topic, image.partition, image.timestamp] : image[part];
}

function section(record) {
  const { before, message, error, number } = record;
  const origin = message ? `${message.topic}-${message.partition}:${message.offset}` : `${JSON.stringify(before.source_partition)} ${JSON.stringify(before.source_offset)}`;
  const rows = [];
  let last = null;
  for (const { stage, outcome, image } of stagesOf(record)) {
    const marks = outcome === "changed" && last ? changed(image, last) : [];
    rows.push(h("tr", { "data-stage": stage }, h("th", { scope: "row" }, stage, outcome ? h("small", null, outcome) : null), ...cells(image, marks)));
    if (image) last = image;
  }
  return h("section", { "data-number": number }, h("h3", null, `Record ${number}`, h("small", null, origin)),
    h("table", { "aria-label": `Record ${number}` },
      h("thead", null, h("tr", null, ["Stage", "Topic", "Key", "Value", "Headers"].map((label) => h("th", { scope: "col" }, label)))),
      h("tbody", null, rows)),
    error ? h("p.wrong", null, `Failed in ${error.stage} (${error.transform ?? shortClass(error.class)}): ${error.message} ${error.outcome}`) : null);
}

function cells(image, marks) {
  if (!image) return [h("td.unknown", { colspan: PARTS.length }, UNKNOWN)];
  const contents = { where: where(image), key: datum(image.key), value: datum(image.value), headers: headers(image.headers) };
  return PARTS.map((part) => (marks.includes(part) ? h("td.changed", null, h("span.hidden", null, "changed: "), contents[part]) : h("td", null, contents[part])));
}

function where(image) {
  const at = image.partition === null ? image.topic : `${image.topic}-${image.partition}`;
  return [at, image.timestamp === null ? null : h("small", null, time(image.timestamp)), image.clipped ? h("small", null, "clipped") : null];
}

/** Draw data of Connect with its schema, or bytes. */
function datum(value) {
  if (value === null || value.data === null) return h("span.unknown", null, "null");
  if (value.data !== undefined) return [h("code.data", null, JSON.stringify(value.data, null, 2)), value.schema === null ? null : h("small", null, value.schema)];
  const kind = value.base64 === undefined ? "" : "base64, ";
  return [h("code.data", null, value.base64 ?? pretty(value.text)), h("small", null, `${kind}${exact(value.size)} ${value.size === 1 ? "byte" : "bytes"}`)];
}

function headers(all) {
  if (!all.length) return UNKNOWN;
  return h("dl.keys", null, all.flatMap((each) => [h("dt", null, h("code", null, each.key)), h("dd", null, datum("value" in each ? each.value : each))]));
}

function targetOf(target) {
  if (!target) return null;
  const shown = target.error ? h("p.wrong", null, `It cannot be shown: ${target.error}`) : h("pre", { tabindex: "0" }, (target.target ?? []).join("\n"));
  return h("section", { "data-target": "" }, h("h3", null, "Would write", target.clipped ? h("small", null, "clipped") : null), shown);
}

function problem({ message, trace }) {
  return h("div.errors", null, h("p.banner", null, message), trace ? h("details", null, h("summary", null, "Trace"), h("pre", { tabindex: "0" }, trace)) : null);
}

function findings({ configs }) {
  const found = configs.flatMap(({ value }) => (value?.errors ?? []).map((message) => h("li", null, h("code", null, value.name), `: ${message}`)));
  return h("ul.findings", null, found);
}
