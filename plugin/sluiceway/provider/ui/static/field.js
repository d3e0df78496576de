// Draws one key of a config in a form: its label, a control by its type, its documentation, and its errors.

import { isSecret } from "./config.js";
import { h } from "./dom.js";
import { shortClass } from "./format.js";

const OTHER = "\u0000other";
let number = 0;

export class Field {
  /** ``changed(value)`` is called when the user changes the value; undefined for none. */
  constructor(key, changed) {
    this.key = key;
    this.changed = changed;
    this.id = `field-${++number}`;
    this.isFree = false; // whether the user chose to type a value instead of one of the recommended ones
    this.isTouched = false;
    this.label = h("label", { for: this.id });
    this.holder = h("div.control");
    this.errors = h("div.wrong", { id: `${this.id}-errors` });
    this.hint = h("p.hint", { id: `${this.id}-hint` });
    this.element = h("div.field", { "data-field": key }, this.label, this.holder, this.errors, this.hint);
  }

  /** Show a key as validation found it. ``all``: show errors of keys that the user has not filled in yet, too. */
  update({ definition, found, alike, choices: known }, value, all) {
    const kind = this.kindOf(definition, found, known, value);
    const choices = kind === "choice" ? choicesOf(definition, found, known) : [];
    const key = JSON.stringify([kind, choices, definition?.default_value]);
    if (key !== this.drawn) this.draw(kind, choices, definition, value);
    this.drawn = key;
    if (document.activeElement !== this.control && this.control.value !== (value ?? "")) this.setValue(value);
    this.describe(definition, alike);
    this.showErrors(found?.errors ?? [], all || this.isTouched || value !== undefined);
    this.control.setAttribute("aria-required", String(Boolean(definition?.required)));
    this.element.hidden = found?.visible === false && value === undefined;
  }

  focus() {
    this.control.focus();
  }

  lock(reason) {
    this.control.readOnly = true;
    this.control.title = reason;
  }

  kindOf(definition, found, known, value) {
    if (definition?.type === "PASSWORD" || (!definition && isSecret(this.key))) return "password";
    if (value?.includes("\n")) return "lines";
    if (this.isFree || definition?.type === "LIST") return "text";
    return choicesOf(definition, found, known).length ? "choice" : "text";
  }

  draw(kind, choices, definition, value) {
    const hadFocus = this.holder.contains(document.activeElement);
    const attributes = {
      id: this.id, "aria-describedby": `${this.errors.id} ${this.hint.id}`, class: kind === "password" ? "width-medium" : `width-${(definition?.width ?? "NONE").toLowerCase()}`,
      "data-key": this.key, spellcheck: "false", autocomplete: kind === "password" ? "new-password" : "off",
    };
    const typed = { ...attributes, input: () => this.typed(this.control.value) };
    if (kind === "choice") this.control = h("select", { ...attributes, change: () => this.chosen() }, options(choices, definition, value));
    else if (kind === "lines") this.control = h("textarea", { ...typed, rows: "4" });
    else this.control = h("input", { ...typed, type: kind === "password" ? "password" : "text", inputmode: isNumber(definition) ? "numeric" : null });
    this.setValue(value);
    this.holder.replaceChildren(this.control, ...(kind === "password" ? [this.reveal()] : []));
    if (hadFocus) this.control.focus();
  }

  setValue(value) {
    const { control } = this;
    if (control.tagName === "SELECT" && value !== undefined && ![...control.options].some((each) => each.value === value)) {
      control.prepend(h("option", { value }, value));
    }
    control.value = value ?? "";
  }

  reveal() {
    const button = h("button", { type: "button", "aria-pressed": "false", "aria-label": `Show the value of ${this.key}`, click: () => {
      const shows = this.control.type === "password";
      this.control.type = shows ? "text" : "password";
      button.setAttribute("aria-pressed", String(shows));
    } }, "Show");
    return button;
  }

  chosen() {
    if (this.control.value !== OTHER) return this.typed(this.control.value);
    this.isFree = true;
    this.drawn = null;
    this.draw("text", [], null, "");
    this.control.focus();
  }

  typed(text) {
    this.isTouched = true;
    this.changed(text === "" ? undefined : text);
  }

  describe(definition, alike) {
    const name = definition?.display_name || this.key;
    const text = JSON.stringify([name, definition?.documentation, definition?.type, definition?.default_value, definition?.required, alike]);
    if (text === this.described) return;
    this.described = text;
    this.label.replaceChildren(name, ...(name === this.key ? [] : [" ", h("code", null, this.key)]), ...(definition?.required ? [h("b.required", null, " required")] : []));
    this.hint.replaceChildren(definition ? `${definition.documentation} ` : `The plugin does not define this key. ${alike ? `Did you mean ${alike}? ` : ""}`, h("span.meta", null, about(definition)));
  }

  showErrors(errors, shows) {
    const visible = shows ? errors : [];
    const text = JSON.stringify(visible);
    if (text !== this.shownErrors) this.errors.replaceChildren(...visible.map((error) => h("p", null, error)));
    this.shownErrors = text;
    this.hasErrors = errors.length > 0;
    this.control.setAttribute("aria-invalid", String(visible.length > 0));
  }
}

// What a plugin recommends depends on the config; ``known`` are all values that its definition allows.
function choicesOf(definition, found, known) {
  const recommended = (found?.recommended_values ?? []).filter((each) => each !== null && each !== "");
  if (recommended.length) return recommended;
  return definition?.type === "BOOLEAN" ? ["true", "false"] : known ?? [];
}

function options(choices, definition, value) {
  const ofClass = (each) => (definition?.type === "CLASS" && shortClass(each) !== each ? `${shortClass(each)} (${each})` : each);
  const unset = definition?.default_value ? `Default: ${definition.default_value}` : definition?.required ? "Choose a value" : "Not set";
  const known = value === undefined || choices.includes(value) ? choices : [value, ...choices];
  return [h("option", { value: "" }, unset), ...known.map((each) => h("option", { value: each }, ofClass(each))), h("option", { value: OTHER }, "Other value…")];
}

function isNumber(definition) {
  return ["INT", "SHORT", "LONG", "DOUBLE"].includes(definition?.type);
}

/** Return type, default and importance of a key in words. */
export function about(definition) {
  if (!definition) return "";
  const parts = [definition.type.toLowerCase()];
  if (!definition.required) parts.push(definition.default_value ? `default ${definition.default_value}` : "no default");
  return [...parts, `${definition.importance.toLowerCase()} importance`].join(", ");
}
