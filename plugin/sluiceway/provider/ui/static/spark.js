// Draws small line charts of the last hour: a value for each minute, with gaps for unknown values.

import { h, svg } from "./dom.js";

/** Return the points of each unbroken part of the line: an array of arrays of [x, y]. */
export function lines(values, width, height) {
  const top = Math.max(...values.filter((value) => value !== null), 0) || 1;
  const step = values.length > 1 ? width / (values.length - 1) : 0;
  const parts = [[]];
  values.forEach((value, index) => {
    if (value === null) parts.push([]);
    else parts.at(-1).push([round(index * step), round(height - (value / top) * height)]);
  });
  return parts.filter((part) => part.length);
}

export function sparkline(values, label, width = 120, height = 26) {
  const chart = svg("svg", {
    class: "spark", viewBox: `-2 -2 ${width + 4} ${height + 4}`, preserveAspectRatio: "none", role: "img", "aria-label": label,
  });
  if (!values?.some((value) => value !== null)) return h("span.spark.none", { role: "img", "aria-label": `${label}: not known yet` });
  chart.append(svg("line", { class: "base", x1: 0, y1: height, x2: width, y2: height }));
  for (const part of lines(values, width, height)) {
    const drawn = part.length === 1 ? [[Math.max(0, part[0][0] - 1), part[0][1]], part[0]] : part;
    const path = drawn.map(([x, y]) => `${x},${y}`).join(" ");
    chart.append(
      svg("polygon", { class: "area", points: `${drawn[0][0]},${height} ${path} ${drawn.at(-1)[0]},${height}` }),
      svg("polyline", { class: "line", points: path }),
    );
  }
  return chart;
}

function round(number) {
  return Math.round(number * 100) / 100;
}
