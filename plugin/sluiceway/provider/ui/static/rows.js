// Filters, sorts and pages the rows of the list. No I/O.

export const PAGE = 25;

export const STATES = ["FAILED", "UNASSIGNED", "RESTARTING", "STARTING", "RUNNING", "IDLE", "PAUSED", "STOPPED"];

const order = new Intl.Collator().compare; // localeCompare makes a collator for each call

const KEYS = {
  name: (row) => row.name.toLowerCase(),
  type: (row) => row.type,
  state: (row) => STATES.indexOf(row.shown),
  rate: (row) => row.rate,
  lag: (row) => row.lag,
  dead_letters: (row) => row.dead_letters,
};

export function counts(rows) {
  const found = Object.fromEntries(STATES.map((state) => [state, 0]));
  for (const row of rows) found[row.shown] += 1;
  return found;
}

/** Return the rows of a page, the number of matching rows, and the page's number, limited to the last page. */
export function chosen(rows, { filter, state, sort, descending, page }) {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const matching = rows.filter((row) => {
    const text = `${row.name} ${row.type} ${row.class}`.toLowerCase();
    return (state === null || row.shown === state) && words.every((word) => text.includes(word));
  });
  const key = KEYS[sort];
  matching.sort((a, b) => compared(key(a), key(b), descending) || compared(KEYS.name(a), KEYS.name(b), false));
  const pages = Math.max(1, Math.ceil(matching.length / PAGE));
  const shown = Math.min(page, pages - 1);
  return { rows: matching.slice(shown * PAGE, (shown + 1) * PAGE), total: matching.length, page: shown, pages };
}

// Unknown values come last in both directions.
function compared(a, b, descending) {
  if (a === null || b === null) return (a === null) - (b === null);
  const sign = typeof a === "string" ? order(a, b) : a - b;
  return descending ? -sign : sign;
}
