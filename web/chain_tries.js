// Draws the learner's tries: bytes against layers that run again, over the frontiers.
import { ticksOf } from "./chain_model.js";
import { make, patch, set, setText, shape } from "./elements.js";
import { text } from "./texts.js";

const WIDTH = 360, HEIGHT = 190, LEFT = 46, RIGHT = 10, TOP = 12, BOTTOM = 40;

const MARKS = { // outlines around the point 0 0
  now: "M0 -7L7 0L0 7L-7 0Z",
  try: "M3.5 0A3.5 3.5 0 1 1 -3.5 0A3.5 3.5 0 1 1 3.5 0Z",
  equal: "M-3 -3H3V3H-3Z",
  revolve: "M0 -4L4 3H-4Z",
};

const mark = (kind, x, y) => shape("path", { class: `mark ${kind}`, d: MARKS[kind], transform: `translate(${x} ${y})` });

export function makeTries() {
  const [frames, columns, rows, equal, revolve, tries] =
    ["frames", "columns", "rows", "points", "points", "points"].map((name) => shape("g", { class: name }));
  const lines = { equal: shape("path", { class: "way equal" }), revolve: shape("path", { class: "way revolve" }) };
  const here = mark("now", 0, 0);
  frames.append(shape("rect", { class: "frame", x: LEFT, y: TOP, width: WIDTH - LEFT - RIGHT, height: HEIGHT - TOP - BOTTOM }));
  const svg = shape("svg", { class: "tries", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" }, frames,
    shape("text", { class: "label", x: WIDTH - RIGHT, y: HEIGHT - 6, "text-anchor": "end" }, text("chain.triesX")),
    shape("text", { class: "label", x: 12, y: TOP, "text-anchor": "end", transform: `rotate(-90 12 ${TOP})` }, text("chain.triesY")),
    columns, rows, lines.equal, lines.revolve, equal, revolve, tries, here);
  const legend = make("ul", { class: "legend" }, ...["now", "try", "equal", "revolve"].map((kind, i) =>
    make("li", {}, shape("svg", { width: 18, height: 16, "aria-hidden": "true" }, mark(kind, 9, 8)), text("chain.triesLegend")[i])));
  const element = make("figure", {}, make("figcaption", {}, text("chain.tries")), svg, legend);

  // Draws {run, tries, equal, revolve, mostBytes, mostAgain}. Points have {peak, again}.
  element.draw = (model) => {
    const xOf = (bytes) => LEFT + bytes / (model.mostBytes * 1.04) * (WIDTH - LEFT - RIGHT);
    const yOf = (again) => HEIGHT - BOTTOM - again / (model.mostAgain * 1.04) * (HEIGHT - TOP - BOTTOM);
    const place = (element, { peak, again }) => set(element, { transform: `translate(${xOf(peak).toFixed(1)} ${yOf(again).toFixed(1)})` });
    const points = (group, kind, all) => patch(group, all, ({ peak, again }) => `${peak} ${again}`, () => mark(kind, 0, 0), place);
    const pathOf = (all) => all.map(({ peak, again }, i) => `${i ? "L" : "M"}${xOf(peak).toFixed(1)} ${yOf(again).toFixed(1)}`).join("");
    for (const [group, kind] of [[equal, "equal"], [revolve, "revolve"]]) {
      points(group, kind, model[kind]);
      set(lines[kind], { d: pathOf(model[kind]) });
    }
    points(tries, "try", model.tries);
    place(here, model.run);
    const below = () => shape("text", { class: "tick middle", y: HEIGHT - BOTTOM + 15 });
    patch(columns, ticksOf(model.mostBytes / 1024, 5), (kib) => kib, below, (tick, kib) => {
      set(tick, { x: xOf(kib * 1024) });
      setText(tick, String(kib));
    });
    patch(rows, ticksOf(model.mostAgain, 5), (again) => again, () => shape("text", { class: "tick end", x: LEFT - 6 }), (tick, again) => {
      set(tick, { y: yOf(again) + 4 });
      setText(tick, String(again));
    });
    set(svg, { "aria-label": text("chain.triesPicture", { count: model.tries.length }) });
  };
  return element;
}
