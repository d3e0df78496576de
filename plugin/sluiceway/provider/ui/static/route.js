// Reads and writes the part of the page's URL after #, which says what the page shows. No I/O.

// A name is encoded, so it contains no slash: #orders is a connector, and #/plugins cannot be one.
const OF_CONNECTOR = ["edit", "clone", "offsets", "history"];

/** Return what a hash shows: {view} with the ``name`` of a connector or the class of a ``plugin``. */
export function parsed(hash) {
  const parts = hash.replace(/^#/, "").split("/").map(decoded);
  if (parts[0] === "") {
    if (["flow", "moves"].includes(parts[1])) return { view: parts[1] };
    if (parts[1] !== "plugins") return { view: "list" };
    if (!parts[2]) return { view: "plugins" };
    return { view: parts[3] === "create" ? "create" : "plugin", plugin: parts[2] };
  }
  return { view: OF_CONNECTOR.includes(parts[1]) ? parts[1] : "detail", name: parts[0] };
}

export function ofConnector(name, view = "detail") {
  const hash = `#${encodeURIComponent(name)}`;
  return view === "detail" ? hash : `${hash}/${view}`;
}

export function ofPlugin(plugin, view = "plugin") {
  const hash = `#/plugins/${encodeURIComponent(plugin)}`;
  return view === "plugin" ? hash : `${hash}/${view}`;
}

export const PLUGINS = "#/plugins";
export const FLOW = "#/flow";
export const MOVES = "#/moves";

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}
