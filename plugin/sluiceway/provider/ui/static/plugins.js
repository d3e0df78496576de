// Shows the installed plugins and the documentation of their config keys.

import { RequestError, pluginConfig, plugins } from "./api.js";
import { sections } from "./config.js";
import { h, replace } from "./dom.js";
import { about } from "./field.js";
import { shortClass } from "./format.js";
import { ofPlugin } from "./route.js";

const TYPES = {
  transformation: "Transformations", predicate: "Predicates", converter: "Converters", header_converter: "Header converters",
};
const CONNECTORS = { source: "Source", sink: "Sink" };
const LAST = "Test data";

/** Return the connectors by the systems that they connect: [system, connectors], sorted, those that make up records last. */
export function bySystem(found) {
  const systems = new Map();
  for (const each of found.filter(({ type }) => type in CONNECTORS)) systems.set(each.system, [...systems.get(each.system) ?? [], each]);
  const order = new Intl.Collator().compare;
  return [...systems].sort(([a], [b]) => (a === LAST) - (b === LAST) || order(a, b));
}

export class Plugins {
  /** ``go(hash)`` opens another part of the page. */
  constructor({ go }) {
    this.go = go;
    this.all = [];
    this.filter = h("input.filter", { type: "search", placeholder: "Filter by system, class, or what it does", "aria-label": "Filter plugins", input: () => this.draw() });
    this.body = h("div.body", null, h("p.empty", null, "Loading plugins…"));
    this.element = h("section.plugins", { "aria-label": "Plugins" }, link(go, "#", "‹ All connectors", "a.back"),
      h("header", null, h("h1", null, "Plugins"), this.filter), this.body);
    this.load();
  }

  async load() {
    try {
      this.all = await plugins();
      this.draw();
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      replace(this.body, h("p.empty", null, error.message));
    }
  }

  draw() {
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const text = (each) => [each.class, each.type, each.system, each.language, each.about].join(" ").toLowerCase();
    const found = this.all.filter((each) => words.every((word) => text(each).includes(word)));
    const connectors = bySystem(found);
    const others = Object.entries(TYPES).map(([type, title]) => [title, found.filter((each) => each.type === type)]).filter(([, list]) => list.length);
    replace(this.body, connectors.length ? this.section("Connectors", connectors) : "", ...others.map(([title, list]) => this.section(title, [[null, list]])));
    if (!found.length) replace(this.body, h("p.empty", null, "No plugins match the filter."));
  }

  /** Draw a table of plugins, with a group of rows for each [system, plugins]. */
  section(title, groups) {
    const head = [title === "Connectors" ? "Connector" : "Plugin", "What it does", "Kind", "Version"];
    return h("section", null, h("h2", null, title), h("table", { "aria-label": title },
      h("thead", null, h("tr", null, head.map((label) => h("th", { scope: "col" }, label)))),
      groups.map(([system, list]) => h("tbody", { "data-system": system }, system === null ? null : h("tr.system", null, h("th", { scope: "rowgroup", colspan: head.length }, system)),
        list.map((each) => this.row(each))))));
  }

  row(each) {
    const name = shortClass(each.class);
    return h("tr", { "data-plugin": each.class }, h("th", { scope: "row", class: "name" }, link(this.go, ofPlugin(each.class), name), name === each.class ? null : h("small", null, each.class)),
      h("td", null, each.about ?? h("span.unknown", null, "–")), h("td.kind", null, CONNECTORS[each.type] ?? "", each.language === "java" ? h("small", null, "Java plugin") : null, each.used ? h("small", null, used(each)) : null),
      h("td.version", null, each.version ?? "–"));
  }
}

export class PluginPage {
  constructor(plugin, { go, mayCreate }) {
    this.about = h("p.about", null, plugin);
    this.body = h("div.body", null, h("p.empty", null, "Loading…"));
    this.create = h("a.button.main", { href: ofPlugin(plugin, "create"), hidden: true, click: (event) => { event.preventDefault(); go(ofPlugin(plugin, "create")); } }, "Create a connector");
    this.element = h("section.plugin", { "aria-label": plugin }, link(go, "#/plugins", "‹ All plugins", "a.back"),
      h("header", null, h("h1", null, shortClass(plugin)), this.create, this.about), this.body);
    this.load(plugin, mayCreate);
  }

  async load(plugin, mayCreate) {
    try {
      const [all, keys] = await Promise.all([plugins(), pluginConfig(plugin)]);
      const found = all.find((each) => each.class === plugin);
      this.create.hidden = !(found?.type in CONNECTORS && mayCreate());
      if (found?.about) this.about.append(` · ${found.about}`);
      if (found?.used) this.about.append(` · ${used(found)}, though both are installed`);
      replace(this.body, ...documentation(keys));
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      replace(this.body, h("p.empty", null, error.message));
    }
  }
}

/** Return which class configs get, of a plugin that is installed in two languages. */
function used(plugin) {
  return `${plugin.used === "java" ? "Java" : "Python"} is used`;
}

function documentation(keys) {
  if (!keys.length) return [h("p.empty", null, "This plugin has no config keys.")];
  const infos = { groups: [...new Set(keys.map((key) => key.group).filter(Boolean))], configs: keys.map((definition) => ({ definition, value: null })) };
  const found = sections(infos, [], []);
  return found.map(({ title, fields }) => h("section", null, found.length > 1 ? h("h2", null, title) : null, h("dl.keys", null,
    fields.flatMap(({ key, definition }) => [
      h("dt", null, h("code", null, key), definition.required ? h("b.required", null, " required") : null),
      h("dd", null, definition.documentation, " ", h("span.meta", null, about(definition))),
    ]))));
}

function link(go, hash, label, tag = "a") {
  return h(tag, { href: hash, click: (event) => { event.preventDefault(); go(hash); } }, label);
}
