// Adopts Airflow's theme: light or dark, with its colors, which may be customized. The page is shown in a frame of the same
// origin, so it can read the document of its parent.

const ADOPTED = {
  "--bg": "--chakra-colors-bg", "--fg": "--chakra-colors-fg", "--fg-muted": "--chakra-colors-fg-muted", "--border": "--chakra-colors-border",
  "--accent": "--chakra-colors-brand-solid", "--on-accent": "--chakra-colors-brand-contrast",
  "--accent-fg": "--chakra-colors-fg-info", "--font": "--chakra-fonts-body",
  "--mono": "--chakra-fonts-mono",
};

export function followTheme() {
  const airflow = parentElement();
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const adopt = () => {
    const mode = modeOf(airflow) ?? stored() ?? (dark.matches ? "dark" : "light");
    document.documentElement.dataset.theme = mode;
    if (airflow) adoptColors(airflow);
  };
  adopt();
  dark.addEventListener("change", adopt);
  window.addEventListener("storage", adopt);
  if (airflow) new MutationObserver(adopt).observe(airflow, { attributes: true, attributeFilter: ["class", "data-theme", "style"] });
}

function parentElement() {
  try {
    return window.parent === window ? null : window.parent.document.documentElement;
  } catch {
    return null; // the parent has another origin
  }
}

function modeOf(element) {
  if (!element) return null;
  const mode = element.dataset.theme ?? [...element.classList].find((each) => each === "dark" || each === "light");
  return mode === "dark" || mode === "light" ? mode : null;
}

function stored() {
  try {
    const mode = window.localStorage.getItem("theme");
    return mode === "dark" || mode === "light" ? mode : null;
  } catch {
    return null;
  }
}

function adoptColors(airflow) {
  const style = window.parent.getComputedStyle(airflow);
  for (const [own, theirs] of Object.entries(ADOPTED)) {
    const value = style.getPropertyValue(theirs).trim();
    if (value) document.documentElement.style.setProperty(own, value);
  }
}
