// Looks as Airflow does: light or dark, with the colours of Airflow's own (perhaps customised) theme. The page is shown in a frame
// of the same origin, so it may look at the document around it.

const ADOPTED = {
  "--bg": "--chakra-colors-bg", "--fg": "--chakra-colors-fg", "--fg-muted": "--chakra-colors-fg-muted", "--border": "--chakra-colors-border",
  "--accent": "--chakra-colors-brand-solid", "--accent-fg": "--chakra-colors-fg-info", "--font": "--chakra-fonts-body",
  "--mono": "--chakra-fonts-mono",
};

export function followTheme() {
  const outside = surrounding();
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const adopt = () => {
    const mode = modeOf(outside) ?? stored() ?? (dark.matches ? "dark" : "light");
    document.documentElement.dataset.theme = mode;
    if (outside) adoptColours(outside);
  };
  adopt();
  dark.addEventListener("change", adopt);
  window.addEventListener("storage", adopt);
  if (outside) new MutationObserver(adopt).observe(outside, { attributes: true, attributeFilter: ["class", "data-theme", "style"] });
}

function surrounding() {
  try {
    return window.parent === window ? null : window.parent.document.documentElement;
  } catch {
    return null; // a frame of another origin
  }
}

function modeOf(element) {
  if (!element) return null;
  const told = element.dataset.theme ?? [...element.classList].find((each) => each === "dark" || each === "light");
  return told === "dark" || told === "light" ? told : null;
}

function stored() {
  try {
    const told = window.localStorage.getItem("theme");
    return told === "dark" || told === "light" ? told : null;
  } catch {
    return null;
  }
}

function adoptColours(outside) {
  const style = window.parent.getComputedStyle(outside);
  for (const [own, theirs] of Object.entries(ADOPTED)) {
    const value = style.getPropertyValue(theirs).trim();
    if (value) document.documentElement.style.setProperty(own, value);
  }
}
