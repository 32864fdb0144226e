// Draws the second plot: the measured distance of each setting against the items of a throw, both axes logarithmic.
import { patch, set, setText, shape } from "./elements.js";
import { spreadText } from "./noise_model.js";
import { text } from "./texts.js";

// Both axes have the same scale, so that the law is a line that falls by half as much as it runs.
const WIDTH = 460, HEIGHT = 300, LEFT = 46, TOP = 12, DECADE = 82;
const LEAST_ITEMS = 2 ** -0.6, MOST_SPREAD = 10, LEAST_SPREAD = 0.018, MOST_ITEMS = 2 ** 15.6;
const ITEM_TICKS = [1, 4, 16, 64, 256, 1024, 4096, 16384];
const SPREAD_TICKS = [10, 3, 1, 0.3, 0.1, 0.03];

const across = (items) => LEFT + DECADE * Math.log10(items / LEAST_ITEMS);
const down = (spread) => TOP + DECADE * Math.log10(MOST_SPREAD / spread);
const RIGHT = across(MOST_ITEMS), BOTTOM = down(LEAST_SPREAD);

export const nameOf = ({ size, count }) => count === 1 ? String(size) : `${count} × ${size}`;

function grid() {
  const lines = [shape("rect", { class: "frame", x: LEFT, y: TOP, width: RIGHT - LEFT, height: BOTTOM - TOP })];
  ITEM_TICKS.forEach((items, i) => {
    const x = across(items);
    lines.push(shape("line", { class: "grid", x1: x, x2: x, y1: TOP, y2: BOTTOM }),
      shape("text", { class: i % 2 ? "dense" : "", x, y: BOTTOM + 16, "text-anchor": "middle" }, String(items)));
  });
  for (const spread of SPREAD_TICKS) lines.push(
    shape("line", { class: "grid", x1: LEFT, x2: RIGHT, y1: down(spread), y2: down(spread) }),
    shape("text", { x: LEFT - 6, y: down(spread) + 4, "text-anchor": "end" }, String(spread)));
  return [...lines, shape("text", { x: RIGHT, y: BOTTOM + 32, "text-anchor": "end" }, text("noise.plotAcross")),
    shape("text", { x: LEFT + 6, y: TOP + 16 }, text("noise.plotUp"))];
}

// The name of an accumulated dot is above it, and that of a single batch is below, so that equal dots can be read.
function placeOfName(x, many, row) {
  if (many && x < RIGHT - 75) return { x: 8, y: -7 - 14 * row, "text-anchor": "start" };
  const isLeft = x < LEFT + 30;
  return { x: isLeft ? 4 : -8, y: 19 + 14 * row, "text-anchor": isLeft ? "start" : "end" };
}

export function makePlot() {
  const law = shape("line", { class: "law" }), marks = shape("g");
  const element = shape("svg", { class: "plot", id: "plot", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" }, ...grid(), law, marks);

  // Shows {dots, size, count, atOne}; atOne is the line's distance at one item, or null if the line is not shown.
  function draw({ dots, size, count, atOne }) {
    set(law, { visibility: atOne === null ? "hidden" : "visible" });
    if (atOne !== null) {
      const ends = [1, 2 ** 15];
      set(law, { x1: across(ends[0]), y1: down(atOne), x2: across(ends[1]), y2: down(atOne / Math.sqrt(ends[1])) });
    }
    const placed = dots.map((dot, i) => {
      const many = dot.count > 1, before = dots.slice(0, i).filter((one) => one.items === dot.items && one.count > 1 === many);
      return { ...dot, many, row: before.length };
    });
    patch(marks, placed, nameOf, makeDot, (mark, { items, spread, many, row, ...dot }) => {
      set(mark, {
        transform: `translate(${across(items)} ${down(spread)})`,
        class: `dot ${many ? "many" : "one"}${dot.size === size && dot.count === count ? " now" : ""}`,
      });
      set(mark.lastChild, placeOfName(across(items), many, row));
    });
    const words = dots.map((dot) => text("noise.plotDot", { name: nameOf(dot), spread: spreadText(dot.spread) })).join("; ");
    set(element, { "aria-label": text("noise.plot", { dots: words || text("noise.plotEmpty") }) });
  }

  function makeDot(dot) {
    const name = shape("text", { class: "strong" });
    setText(name, nameOf(dot));
    return shape("g", {}, dot.many ? shape("path", { d: "M0 -7L7 0L0 7L-7 0Z" }) : shape("circle", { r: 5.5 }), name);
  }

  return { element, draw };
}
