// Parses JSON and remembers where each value is and how it is spelled. JSON.parse would lose lines, duplicate keys, and the last
// digits of offsets above 2^53. No I/O.

const TOKEN = /\s*([{}[\]:,]|"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)/y;

/** JSON that cannot be read. ``line`` counts from 1. */
export class JsonError extends Error {
  constructor(line, message) {
    super(message);
    this.line = line;
  }
}

/**
 * Return the value in a text: {kind, line, raw} with ``kind`` object, array, string, or literal. Objects have ``members``, an array
 * of {key, line, value}; arrays have ``items``; strings have ``text``. Throws JsonError.
 */
export function parse(text) {
  const reader = new Reader(text);
  const value = reader.value();
  if (reader.peek() !== null) throw reader.wrong("Expected the end of the text");
  return value;
}

/** Return the value of an object's key. */
export function member(object, key) {
  return object.members.find((each) => each.key === key).value;
}

/** Return a text that is the same for equal values, whatever the order of their keys. */
export function canonical({ kind, members, items, text, raw }) {
  if (kind === "object") return `{${members.map(({ key, value }) => `${JSON.stringify(key)}:${canonical(value)}`).sort().join(",")}}`;
  if (kind === "array") return `[${items.map(canonical).join(",")}]`;
  return kind === "string" ? JSON.stringify(text) : raw;
}

class Reader {
  constructor(text) {
    this.text = text;
    this.at = 0;
    this.next = null;
    this.counted = { at: 0, line: 1 };
  }

  /** Return the next token, null at the end. */
  peek() {
    if (this.next !== null) return this.next.token;
    TOKEN.lastIndex = this.at;
    const found = TOKEN.exec(this.text);
    if (found === null) {
      const rest = this.text.slice(this.at);
      if (rest.trim() === "") return null;
      this.next = { token: rest.trim()[0], start: this.at + rest.search(/\S/), end: this.text.length, unknown: true };
      throw this.wrong(this.next.token === '"' ? "A string is not closed, or contains a backslash that starts no escape" : "Unexpected text");
    }
    this.next = { token: found[1], start: TOKEN.lastIndex - found[1].length, end: TOKEN.lastIndex };
    return found[1];
  }

  take() {
    const token = this.peek();
    if (token === null) throw this.wrong("The text ends too early");
    const taken = this.next;
    this.at = taken.end;
    this.next = null;
    return taken;
  }

  expect(token, where) {
    if (this.peek() !== token) throw this.wrong(`Expected ${token} ${where}`);
    return this.take();
  }

  value() {
    const first = this.peek();
    if (first === "{") return this.object();
    if (first === "[") return this.array();
    if (first === null || /^[}\]:,]$/.test(first)) throw this.wrong("Expected a value");
    const { token, start, end } = this.take();
    const scalar = { line: this.line(start), raw: this.text.slice(start, end) };
    return token[0] === '"' ? { kind: "string", text: JSON.parse(token), ...scalar } : { kind: "literal", ...scalar };
  }

  object() {
    const { start } = this.take();
    const line = this.line(start);
    const members = [];
    this.items("}", "in an object", () => {
      if (this.peek()?.[0] !== '"') throw this.wrong("Expected a key in double quotes");
      const key = this.take();
      this.expect(":", "after a key");
      members.push({ key: JSON.parse(key.token), line: this.line(key.start), value: this.value() });
    });
    return { kind: "object", line, raw: this.text.slice(start, this.at), members };
  }

  array() {
    const { start } = this.take();
    const line = this.line(start);
    const items = [];
    this.items("]", "in an array", () => items.push(this.value()));
    return { kind: "array", line, raw: this.text.slice(start, this.at), items };
  }

  items(end, where, read) {
    if (this.peek() === end) return void this.take();
    for (;;) {
      read();
      if (this.peek() === end) return void this.take();
      this.expect(",", `or ${end} ${where}`);
    }
  }

  wrong(message) {
    const at = this.next?.start ?? this.text.trimEnd().length;
    return new JsonError(this.line(at), `${message}.`);
  }

  // Counts on from the last line, because thousands of offsets are read.
  line(at) {
    const from = at >= this.counted.at ? this.counted : { at: 0, line: 1 };
    this.counted = { at, line: from.line + this.text.slice(from.at, at).split("\n").length - 1 };
    return this.counted.line;
  }
}
