// Compares, groups and reads connector configs. A config is an object of strings. No I/O.

import { JsonError, parse } from "./json.js";
import { SHOWN_NAMES, HIDDEN_NAMES } from "./masking.js"; // made by the server

const REFERENCES = /^(\$\{[^}]*\})+$/;
export const HIDDEN = "[hidden]";
const CONVERTER = /^(key|value|header)\.converter\./;
const SET_BY_WORKER = /^(key|value|header)\.converter\.converter\.type$/;
const CLIENT = /^(producer|consumer|admin)\.override\./;
const OWN = /^(airflow|sluiceway|spark)\./;
const WHEN = ["airflow.mode", "airflow.schedule"];

// The group of Connect's first keys, and the sections of keys without a group.
const COMMON = "Common", CONNECTOR = "Connector", CONVERTERS = "Converters", CLIENTS = "Kafka clients", RUN = "Where and when it runs", MORE = "Further keys";
const NAMED = { "offsets.topic": "Offsets topic" }; // Connect's groups that have no name

/** Return the changes from one config to another, sorted by key: {key, before, after}, undefined where a key is missing. */
export function changes(before, after) {
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
  return keys.filter((key) => before[key] !== after[key]).map((key) => ({ key, before: before[key], after: after[key] }));
}

/** Return whether a key holds a secret, by its definition or its name. */
export function isSecret(key, type) {
  return type === "PASSWORD" || (HIDDEN_NAMES.test(key) && !SHOWN_NAMES.test(key));
}

/** Return a value as it may be shown, without a secret in it. */
export function shown(key, value, type) {
  return value && hides(key, value, type) ? HIDDEN : value?.replace(/\S+/g, withoutUserInfo);
}

// Hide the user and password of a URL, which end at the last "@". A pattern for this takes quadratic time.
function withoutUserInfo(word) {
  const begin = word.indexOf("://") + 3, end = word.lastIndexOf("@");
  if (begin < 3 || end < begin || !word.slice(begin, end).includes(":")) return word;
  return word.slice(0, begin) + HIDDEN + word.slice(end);
}

/** Return a config as text. Secrets are hidden, and ``withSecrets`` puts them back. */
export function asText(config, types) {
  const visible = Object.entries(config).map(([key, value]) => [key, hides(key, value, types[key]) ? HIDDEN : value]);
  return `${JSON.stringify(Object.fromEntries(visible), null, 2)}\n`;
}

/** Return a config with the known values in place of hidden ones. */
export function withSecrets(config, known) {
  return Object.fromEntries(Object.entries(config).map(([key, value]) => [key, value === HIDDEN ? known[key] ?? value : value]));
}

// A reference to a secret is none.
function hides(key, value, type) {
  return value !== "" && isSecret(key, type) && !REFERENCES.test(value);
}

/**
 * Read a config from JSON: an object of keys, or a request body with ``name`` and ``config``.
 *
 * Return {config, lines, findings}: the line of each key, and the problems as {line, message}. ``config`` is null if the text
 * cannot be used. Numbers keep their spelling, as in the REST API.
 */
export function fromText(text) {
  let root;
  try {
    root = parse(text);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return { config: null, lines: {}, findings: [{ line: error.line, message: error.message }] };
  }
  if (root.kind !== "object") return { config: null, lines: {}, findings: [{ line: root.line, message: "A config is a JSON object." }] };
  const body = root.members.find(({ key, value }) => key === "config" && value.kind === "object");
  const name = body && root.members.find(({ key, value }) => key === "name" && value.kind === "string");
  const members = body ? [...(name ? [name] : []), ...body.value.members.filter(({ key }) => !name || key !== "name")] : root.members;
  return fromMembers(members);
}

function fromMembers(members) {
  const config = {}, lines = {}, findings = [];
  for (const { key, line, value } of members) {
    if (key in lines) findings.push({ line, message: `${key} is also on line ${lines[key]}.` });
    lines[key] = line;
    if (value.kind === "string") config[key] = value.text;
    else if (value.kind === "literal" && value.raw !== "null") config[key] = value.raw;
    else findings.push({ line, message: value.kind === "literal" ? "A value cannot be null. Remove the line." : "A value is a string, a number, or a boolean." });
  }
  return { config: findings.length ? null : config, lines, findings };
}

/** Return the findings of a validation for each line of a text: {line, message}. Keys that are missing in it belong to line 1. */
export function findingsByLine(infos, lines) {
  return infos.configs.flatMap(({ value }) => (value?.errors ?? []).map((message) => ({ line: lines[value.name] ?? 1, message: `${value.name}: ${message}` })))
    .sort((a, b) => a.line - b.line);
}

/**
 * Return the sections of a form: {title, fields}, where a field is {key, definition, found}. ``definition`` is null for a key that
 * nothing defines, with the key that is ``alike``, if any; ``found`` is its validated value, null for one that was not validated.
 *
 * ``own`` are definitions of keys that Connect does not have, ``keys`` are those of the config, defined or not.
 */
export function sections(infos, own, keys) {
  const fields = new Map();
  for (const definition of own) fields.set(definition.name, { key: definition.name, definition, found: null });
  for (const { definition, value } of infos.configs) {
    const key = definition?.name ?? value.name;
    if (SET_BY_WORKER.test(key) && !keys.includes(key)) continue;
    fields.set(key, { key, definition: definition ?? fields.get(key)?.definition ?? null, found: value });
  }
  const known = [...fields.keys()];
  for (const key of keys) {
    if (!fields.has(key)) fields.set(key, { key, definition: null, found: null, alike: alike(key, known) });
  }
  const byTitle = new Map();
  for (const field of fields.values()) {
    const title = titleOf(field);
    if (!byTitle.has(title)) byTitle.set(title, []);
    byTitle.get(title).push(field);
  }
  const order = orderOf(infos.groups);
  const rank = (title) => (order.includes(title) ? order.indexOf(title) : order.length);
  return [...byTitle].map(([title, found]) => ({ title, fields: found.sort(inOrder) })).sort((a, b) => rank(a.title) - rank(b.title));
}

function titleOf({ key, definition }) {
  if (CONVERTER.test(key) && definition?.group !== COMMON) return CONVERTERS; // a converter's own groups do not name it
  if (CLIENT.test(key)) return CLIENTS;
  if (definition?.group) return NAMED[definition.group] ?? definition.group;
  if (OWN.test(key)) return RUN;
  return definition ? CONNECTOR : MORE;
}

// What a user must know comes first: name and class, when it runs, then the connector's own keys.
function orderOf(groups) {
  const framework = [COMMON, CONVERTERS, "Transforms", "Predicates", "Error Handling", "Topic Creation", "Exactly Once Support", "offsets.topic"];
  const isOf = (plugins) => (group) => group.startsWith(`${plugins}: `);
  const inFramework = (group) => framework.includes(group) || isOf("Transforms")(group) || isOf("Predicates")(group);
  return [
    COMMON, RUN, CONNECTOR, ...groups.filter((group) => !inFramework(group)), MORE, CONVERTERS,
    "Transforms", ...groups.filter(isOf("Transforms")), "Predicates", ...groups.filter(isOf("Predicates")),
    "Error Handling", "Topic Creation", "Exactly Once Support", NAMED["offsets.topic"], CLIENTS,
  ];
}

const IMPORTANCES = ["HIGH", "MEDIUM", "LOW"];

// Keys without an order (-1) are sorted by importance, in the order of their definition.
function inOrder(a, b) {
  const [x, y] = [a, b].map(({ definition }) => definition);
  if (!x || !y) return (x === null) - (y === null);
  if (x.order_in_group !== y.order_in_group) return place(x) - place(y);
  return y.required - x.required || IMPORTANCES.indexOf(x.importance) - IMPORTANCES.indexOf(y.importance);
}

function place(definition) {
  return definition.order_in_group < 0 ? Number.MAX_SAFE_INTEGER : definition.order_in_group;
}

/** Return whether a form shows a field at once. Others are behind a button. */
export function isProminent({ key, definition, found }, config) {
  return key in config || WHEN.includes(key) || !definition || definition.required || definition.importance === "HIGH" || (found?.errors ?? []).length > 0;
}

/** Return the known key that an unknown one is a misspelling of: at most one letter in five differs; undefined if there is none. */
export function alike(key, known) {
  const [, found] = known.reduce((best, each) => {
    const distance = edits(key, each, best[0]);
    return distance < best[0] ? [distance, each] : best;
  }, [Math.floor(key.length / 5) + 1, undefined]);
  return found;
}

// The letters to insert, remove, replace, or swap with the next that make one text of the other (Damerau and Levenshtein's
// distance); ``limit`` if the lengths differ by as many.
function edits(a, b, limit) {
  if (Math.abs(a.length - b.length) >= limit) return limit;
  let before = [], above = [], row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    [before, above, row] = [above, row, [i]];
    for (let j = 1; j <= b.length; j++) {
      const replaced = above[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      row[j] = Math.min(above[j] + 1, row[j - 1] + 1, replaced, isSwapped ? before[j - 2] + 1 : Infinity);
    }
  }
  return row[b.length];
}
