// Draws the plots of the lessons. Each series has a shape and a colour of its own.
import { make, shape } from "./elements.js";
import { hasEqualScale, rangeOf, ticksOf } from "./lesson_model.js";
import { text } from "./texts.js";

const SHAPES = ["circle", "square", "triangle", "diamond"];
const [LEFT, TOP, RIGHT, BOTTOM] = [52, 12, 16, 34];
const [WIDTH, HEIGHT] = [560, 360]; // the largest size of the area between the axes

function mark(series, x, y, size) {
  const kind = SHAPES[series % SHAPES.length], r = size;
  const attributes = { class: `mark s${series % SHAPES.length}` };
  if (kind === "circle") return shape("circle", { ...attributes, cx: x, cy: y, r });
  const points = {
    square: [[-r, -r], [r, -r], [r, r], [-r, r]],
    triangle: [[0, -1.3 * r], [1.3 * r, r], [-1.3 * r, r]],
    diamond: [[0, -1.5 * r], [1.5 * r, 0], [0, 1.5 * r], [-1.5 * r, 0]],
  }[kind];
  return shape("polygon", { ...attributes, points: points.map(([dx, dy]) => `${x + dx},${y + dy}`).join(" ") });
}

// A series of few points is drawn with larger marks, because other points surround them.
const sizeOf = (series) => series.y.length > 8 ? 4 : 8;

function legend(event) {
  return make("ul", { class: "lesson-legend" }, ...event.series.map((series, i) => make("li", {},
    shape("svg", { viewBox: "-12 -12 24 24", "aria-hidden": "true" }, mark(i, 0, 0, sizeOf(series))), series.label)));
}

export function makePlot(event) {
  const x = rangeOf(event.series.flatMap((series) => series.x)), y = rangeOf(event.series.flatMap((series) => series.y));
  let [across, up] = [WIDTH / (x[1] - x[0]), HEIGHT / (y[1] - y[0])]; // units of the picture for one unit of an axis
  if (hasEqualScale(event.kind, x, y)) across = up = Math.min(across, up);
  const [width, height] = [across * (x[1] - x[0]), up * (y[1] - y[0])];
  const atX = (value) => LEFT + (value - x[0]) * across, atY = (value) => TOP + (y[1] - value) * up;
  const grid = [
    ...ticksOf(...x).flatMap((tick) => [
      shape("line", { class: tick === 0 ? "zero" : "grid", x1: atX(tick), x2: atX(tick), y1: TOP, y2: TOP + height }),
      shape("text", { x: atX(tick), y: TOP + height + 22, "text-anchor": "middle" }, String(tick)),
    ]),
    ...ticksOf(...y).flatMap((tick) => [
      shape("line", { class: tick === 0 ? "zero" : "grid", x1: LEFT, x2: LEFT + width, y1: atY(tick), y2: atY(tick) }),
      shape("text", { x: LEFT - 8, y: atY(tick) + 5, "text-anchor": "end" }, String(tick)),
    ]),
  ];
  const marks = event.series.flatMap((series, i) => series.y.map((value, k) => {
    const at = series.x[k];
    if (!Number.isFinite(value) || !Number.isFinite(at)) return null;
    if (event.kind !== "bars") return mark(i, atX(at), atY(value), sizeOf(series));
    const bar = Math.max(2, 0.7 * width / series.y.length), ends = [atY(0), atY(value)], top = Math.min(...ends);
    return shape("rect", {
      class: `mark s${i % SHAPES.length}`, x: atX(at) - bar / 2, y: top, width: bar, height: Math.max(...ends) - top,
    });
  })).filter(Boolean);
  const drawing = shape("svg", {
    viewBox: `0 0 ${LEFT + width + RIGHT} ${TOP + height + BOTTOM}`, width: LEFT + width + RIGHT, height: TOP + height + BOTTOM,
    role: "img", "aria-label": text("lessons.plot", { name: event.name, series: event.series.map((series) => series.label).join(", ") }),
  }, ...grid, ...marks);
  const hasLegend = event.series.length > 1 || event.series[0]?.label !== event.name;
  return make("figure", { class: "lesson-plot" }, make("div", { class: "drawn" }, drawing, ...(hasLegend ? [legend(event)] : [])),
    make("figcaption", { class: "quiet" }, event.name));
}
