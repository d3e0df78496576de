// Creates elements. Text becomes text nodes only, never HTML, because names, traces and configs are untrusted.

const SVG = "http://www.w3.org/2000/svg";

/**
 * Return an element: h("td.number", {title: "…"}, "12"). Attributes that are null or false are left out. A function is an event
 * listener.
 */
export function h(tag, attributes, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name);
  if (classes.length) element.className = classes.join(" ");
  return filled(element, attributes, children);
}

export function svg(name, attributes, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

let held = false;
let waiting = null;
document.addEventListener("pointerdown", () => { held = true; });
for (const kind of ["pointerup", "pointercancel"]) {
  document.addEventListener(kind, () => {
    held = false;
    setTimeout(() => { waiting?.(); waiting = null; }); // after the click event that follows
  });
}

/** Draw now, or when the mouse button is released: a button that is replaced while pressed receives no click. */
export function whenFree(draw) {
  if (held) waiting = draw;
  else draw();
}

/** Replace an element's children. The focus stays on the element with the same data-key. */
export function replace(parent, ...children) {
  const focused = parent.contains(document.activeElement) ? document.activeElement : null;
  const key = focused?.closest("[data-key]")?.dataset.key;
  parent.replaceChildren(...children);
  if (key === undefined) return;
  const again = [...parent.querySelectorAll("[data-key]")].find((each) => each.dataset.key === key);
  again?.focus({ preventScroll: true });
}

/** Make these elements the children of a parent. Those that stay in order are not moved, so they keep the focus. */
export function arrange(parent, elements) {
  const wanted = new Set(elements);
  for (const child of [...parent.children]) {
    if (!wanted.has(child)) child.remove();
  }
  elements.forEach((element, index) => {
    if (parent.children[index] !== element) parent.insertBefore(element, parent.children[index] ?? null);
  });
}
