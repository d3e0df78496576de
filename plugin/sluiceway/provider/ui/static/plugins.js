// Shows the installed plugins and the documentation of their config keys.

import { RequestError, pluginConfig, plugins } from "./api.js";
import { sections } from "./config.js";
import { h, replace } from "./dom.js";
import { about } from "./field.js";
import { shortClass } from "./format.js";
import { ofPlugin } from "./route.js";

const TYPES = {
  source: "Source connectors", sink: "Sink connectors", transformation: "Transformations", predicate: "Predicates",
  converter: "Converters", header_converter: "Header converters",
};

export class Plugins {
  /** ``go(hash)`` opens another part of the page. */
  constructor({ go }) {
    this.go = go;
    this.all = [];
    this.filter = h("input.filter", { type: "search", placeholder: "Filter by name or class", "aria-label": "Filter plugins", input: () => this.draw() });
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
    const found = this.all.filter((each) => words.every((word) => `${each.class} ${each.type}`.toLowerCase().includes(word)));
    const parts = Object.entries(TYPES).map(([type, title]) => [title, found.filter((each) => each.type === type)]).filter(([, list]) => list.length);
    replace(this.body, ...parts.map(([title, list]) => h("section", null, h("h2", null, title), this.table(title, list))));
    if (!parts.length) replace(this.body, h("p.empty", null, "No plugins match the filter."));
  }

  table(title, list) {
    return h("table", { "aria-label": title },
      h("thead", null, h("tr", null, ["Plugin", "Version"].map((label) => h("th", { scope: "col" }, label)))),
      h("tbody", null, list.map((each) => h("tr", { "data-plugin": each.class },
        h("th", { scope: "row", class: "name" }, link(this.go, ofPlugin(each.class), shortClass(each.class)), h("small", null, each.class)),
        h("td", null, each.version ?? "–")))));
  }
}

export class PluginPage {
  constructor(plugin, { go, mayCreate }) {
    this.body = h("div.body", null, h("p.empty", null, "Loading…"));
    this.create = h("a.button.main", { href: ofPlugin(plugin, "create"), hidden: true, click: (event) => { event.preventDefault(); go(ofPlugin(plugin, "create")); } }, "Create a connector");
    this.element = h("section.plugin", { "aria-label": plugin }, link(go, "#/plugins", "‹ All plugins", "a.back"),
      h("header", null, h("h1", null, shortClass(plugin)), this.create, h("p.about", null, plugin)), this.body);
    this.load(plugin, mayCreate);
  }

  async load(plugin, mayCreate) {
    try {
      const [all, keys] = await Promise.all([plugins(), pluginConfig(plugin)]);
      const isConnector = all.some((each) => each.class === plugin && (each.type === "source" || each.type === "sink"));
      this.create.hidden = !(isConnector && mayCreate());
      replace(this.body, ...documentation(keys));
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      replace(this.body, h("p.empty", null, error.message));
    }
  }
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
