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

/** Format a record's timestamp, in milliseconds since the epoch. */
export function time(milliseconds) {
  return milliseconds ? new Date(milliseconds).toLocaleString() : UNKNOWN;
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

/** Return a class's name without its package. */
export function shortClass(name) {
  return name.split(".").pop().split(":").pop();
}
