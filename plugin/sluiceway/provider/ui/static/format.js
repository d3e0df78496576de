// Formats numbers, times, and JSON.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const small = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

export const UNKNOWN = "–";

export function count(number) {
  if (number === null || number === undefined) return UNKNOWN;
  return Math.abs(number) < 100000 ? whole.format(number) : short.format(number);
}

export function exact(number) {
  return number === null || number === undefined ? UNKNOWN : whole.format(number);
}

export function rate(number) {
  if (number === null || number === undefined) return UNKNOWN;
  if (number > 0 && number < 0.1) return "< 0.1";
  return number < 100 ? small.format(number) : count(Math.round(number));
}

/** Format a time, in milliseconds since the epoch, as Airflow's UI does: in the zone that is chosen there. */
export function time(milliseconds) {
  if (!milliseconds) return UNKNOWN;
  const { day, clock, second } = parts(milliseconds);
  return `${day} ${clock}:${second}`;
}

/** Format a time, in seconds since the epoch: without the day if that is today, and without the second. */
export function moment(seconds) {
  const { day, clock } = parts(1000 * seconds);
  return day === parts(Date.now()).day ? clock : `${day} ${clock}`;
}

/** Format the day of a time, in milliseconds since the epoch. */
export function day(milliseconds) {
  return parts(milliseconds).day;
}

const formats = new Map(); // by zone

function parts(milliseconds) {
  const zone = airflowZone();
  if (!formats.has(zone)) formats.set(zone, formatOf(zone));
  const found = Object.fromEntries(formats.get(zone).formatToParts(milliseconds).map(({ type, value }) => [type, value]));
  return { day: `${found.year}-${found.month}-${found.day}`, clock: `${found.hour}:${found.minute}`, second: found.second };
}

function formatOf(zone) {
  const fields = { year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
  try {
    return new Intl.DateTimeFormat("en", { ...fields, timeZone: zone });
  } catch {
    return new Intl.DateTimeFormat("en", fields); // the browser does not know the zone
  }
}

// Airflow's UI keeps the zone in the browser's storage; without one it uses the browser's.
function airflowZone() {
  try {
    return JSON.parse(window.localStorage.getItem("timezone")) ?? undefined;
  } catch {
    return undefined;
  }
}

/** Indent a JSON object or array; leave other text, and JSON whose numbers would change, as it is. */
export function pretty(text) {
  if (!/^\s*[{[]/.test(text) || /\d{16}/.test(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** Return the line of a stack trace that names the first cause: of Java's the last "Caused by", of Python's the first exception. */
export function rootCause(trace) {
  const java = [...(trace ?? "").matchAll(/^Caused by: (.+)$/gm)].pop();
  return java?.[1] ?? /^(\S.*)\n\nThe above exception was the direct cause/m.exec(trace ?? "")?.[1] ?? null;
}

/** Return a class's name without its package. */
export function shortClass(name) {
  return name.split(".").pop().split(":").pop();
}
