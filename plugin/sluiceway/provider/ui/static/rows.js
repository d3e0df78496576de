// Which connectors the list shows, in what order, on which page. Pure.

export const PAGE = 25;

export const STATES = ["FAILED", "UNASSIGNED", "RESTARTING", "RUNNING", "PAUSED", "STOPPED"];

const KEYS = {
  name: (row) => row.name.toLowerCase(),
  type: (row) => row.type,
  state: (row) => STATES.indexOf(worst(row)),
  rate: (row) => row.rate,
  lag: (row) => row.lag,
  dead_letters: (row) => row.dead_letters,
};

/** Return the state that a connector needs to be seen by: one with a failed task has failed in part. */
export function worst(row) {
  return row.tasks.FAILED ? "FAILED" : row.state;
}

export function counts(rows) {
  const found = Object.fromEntries(STATES.map((state) => [state, 0]));
  for (const row of rows) found[worst(row)] += 1;
  return found;
}

/** Return the rows of a page, how many fit in all, and the page's number, which is never one that is not there. */
export function chosen(rows, { filter, state, sort, descending, page }) {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const fitting = rows.filter((row) => {
    const text = `${row.name} ${row.type} ${row.class}`.toLowerCase();
    return (state === null || worst(row) === state) && words.every((word) => text.includes(word));
  });
  const key = KEYS[sort];
  fitting.sort((a, b) => compared(key(a), key(b), descending) || compared(KEYS.name(a), KEYS.name(b), false));
  const pages = Math.max(1, Math.ceil(fitting.length / PAGE));
  const shown = Math.min(page, pages - 1);
  return { rows: fitting.slice(shown * PAGE, (shown + 1) * PAGE), total: fitting.length, page: shown, pages };
}

// What is not known comes last, whichever way the list is sorted.
function compared(a, b, descending) {
  if (a === null || b === null) return (a === null) - (b === null);
  const order = typeof a === "string" ? a.localeCompare(b) : a - b;
  return descending ? -order : order;
}
