// Makes elements. Texts only ever become text nodes: names, traces and configs are not to be trusted.

const SVG = "http://www.w3.org/2000/svg";

/** Return an element: h("td.number", {title: "…"}, "12"). Attributes that are null or false are left out; functions listen. */
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
    setTimeout(() => { waiting?.(); waiting = null; }); // after the click that this belongs to
  });
}

/** Draw now, or once the mouse button is let go: a button that is replaced while it is pressed is never clicked. */
export function whenFree(draw) {
  if (held) waiting = draw;
  else draw();
}

/** Put what is new into a place, keeping the keyboard's focus: elements are found again by their data-key. */
export function replace(place, ...children) {
  const focused = place.contains(document.activeElement) ? document.activeElement : null;
  const key = focused?.closest("[data-key]")?.dataset.key;
  place.replaceChildren(...children);
  if (key === undefined) return;
  const again = [...place.querySelectorAll("[data-key]")].find((each) => each.dataset.key === key);
  again?.focus({ preventScroll: true });
}
