// Draws a chain over time: which outputs are in memory, the bytes in use, and a budget line that can be dragged.
import { highest, lifetimesOf, ticksOf } from "./chain_model.js";
import { make, patch, set, setText, shape } from "./elements.js";
import { formatBytes } from "./numbers.js";
import { text } from "./texts.js";

export const STEP = 256; // bytes of one step of the budget
const LEFT = 74, RIGHT = 14, TOP = 20, MIDDLE = 30, BOTTOM = 36; // pixels around the field and the bytes
const KEYS = { ArrowUp: STEP, ArrowRight: STEP, ArrowDown: -STEP, ArrowLeft: -STEP, PageUp: 2048, PageDown: -2048 };

const hatch = () => shape("defs", {}, shape("pattern", {
  id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)",
}, shape("rect", { class: "hatch-back", width: 6, height: 6 }), shape("rect", { class: "hatch-line", width: 2.6, height: 6 })));

// A legend of small boxes, drawn like the lives of outputs, and words.
export function makeLegend(kinds, words) {
  const box = (kind) => shape("svg", { width: 18, height: 14, "aria-hidden": "true" },
    shape("rect", { class: `life ${kind}`, x: 1, y: 1, width: 16, height: 12 }));
  return make("ul", { class: "legend" }, ...kinds.map((kind, i) => make("li", {}, box(kind), words[i])));
}

// Follows a pressed pointer, also outside the element where it was pressed, until its release.
function follow(onmove, onend) {
  const end = () => {
    removeEventListener("pointermove", onmove);
    for (const type of ["pointerup", "pointercancel"]) removeEventListener(type, end);
    onend();
  };
  addEventListener("pointermove", onmove);
  for (const type of ["pointerup", "pointercancel"]) addEventListener(type, end);
}

// Lets a pointer move cuts, or set and remove them by a click. gapAt(event) returns the start of the segment behind a gap, or 0.
export function dragCuts(element, gapAt, hands) {
  let moved = false;
  element.addEventListener("pointerdown", (event) => {
    let held = event.button === 0 ? gapAt(event) : 0;
    moved = false;
    if (!held || !hands.isCut(held)) return;
    follow((move) => {
      const to = gapAt(move);
      if (!to || to === held) return;
      moved = true;
      if (hands.move(held, to)) held = to;
    }, hands.end);
  });
  element.addEventListener("click", (event) => {
    const gap = gapAt(event), isByKey = event.detail === 0;
    if (gap && (isByKey || !moved)) hands.toggle(gap);
  });
}

// Makes the picture. `hands` has the functions that change the state: isCut, toggle, move, budget, end.
export function makePicture(hands) {
  const words = ["field", "bytes", "time"].map((name) => shape("text", { class: "label" }, text(`chain.${name}`)));
  const [lives, brackets, cuts, bars, rows, columns, levels] =
    ["lives", "brackets", "cuts", "bars", "rows", "columns", "levels"].map((name) => shape("g", { class: name }));
  const frames = [shape("rect", { class: "frame" }), shape("rect", { class: "frame" })];
  const preview = shape("line", { class: "preview" });
  const surface = shape("rect", { class: "surface" });
  const mark = shape("text", { class: "peak" });
  const line = shape("line", { class: "budget" }), hit = shape("rect", { class: "hit" });
  const grip = shape("rect", { class: "handle", rx: 5, width: 30, height: 14 }), arrows = shape("path", { class: "arrows" });
  const label = shape("text", { class: "budget-label" });
  const slider = shape("g", {
    id: "budget", role: "slider", tabindex: 0, "aria-label": text("chain.budget"), "aria-orientation": "vertical",
  }, hit, line, grip, arrows, label);
  const svg = shape("svg", { role: "group", "aria-label": text("chain.picture") }, hatch(), ...frames, ...words, lives, brackets, cuts,
    preview, surface, bars, rows, columns, levels, mark, slider);
  const element = make("div", { class: "picture" }, svg);
  let G = null, model = null;

  const rowOf = (layer) => G.fieldBottom - (layer + 2) * G.row; // the upper edge of a layer's row; layer -1 is the input
  const yOf = (bytes) => G.bottom - bytes * G.scale;
  const pointOf = (event) => {
    const box = svg.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };

  const gapAt = (event) => {
    const gap = Math.round((G.fieldBottom - pointOf(event).y) / G.row) - 1;
    return Math.max(1, Math.min(model.layers - 1, gap));
  };
  dragCuts(surface, gapAt, hands);
  surface.addEventListener("pointermove", (event) => {
    const y = rowOf(gapAt(event) - 1);
    set(preview, { x1: 52, x2: G.right, y1: y, y2: y, visibility: "visible" });
  });
  surface.addEventListener("pointerleave", () => set(preview, { visibility: "hidden" }));
  listenToBudget();

  function listenToBudget() {
    slider.addEventListener("touchstart", (event) => { // a finger drags the line instead of the page; touch-action has no effect on shapes
      event.preventDefault();
      slider.focus();
    }, { passive: false });
    slider.addEventListener("pointerdown", (event) => {
      if (event.button === 0) follow((move) => hands.budget((G.bottom - pointOf(move).y) / G.scale, "budget"), hands.end);
    });
    slider.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const from = model.budget || Math.ceil(model.most / STEP) * STEP;
      const to = { Home: STEP, End: model.most + STEP }[event.key] ?? (KEYS[event.key] && from + KEYS[event.key]);
      if (to === undefined) return;
      event.preventDefault();
      hands.budget(to, "budget keys");
    });
    slider.addEventListener("keyup", hands.end);
  }

  function measure() {
    const width = Math.max(element.clientWidth, 240), height = Math.max(element.clientHeight, 240);
    const inner = height - TOP - MIDDLE - BOTTOM, field = Math.round(inner * 0.54);
    const right = width - RIGHT, bottom = height - BOTTOM;
    G = {
      width, height, right, bottom, fieldBottom: TOP + field, bytesTop: TOP + field + MIDDLE,
      row: field / (model.layers + 1), column: (right - LEFT) / (3 * model.layers - 1), scale: (inner - field) / (model.most * 1.06),
    };
    G.outline = Math.min(1, G.column / 4); // thin columns of a long chain must not become all outline
    set(svg, { viewBox: `0 0 ${width} ${height}` });
    set(frames[0], { x: LEFT, y: TOP, width: right - LEFT, height: field });
    set(frames[1], { x: LEFT, y: G.bytesTop, width: right - LEFT, height: bottom - G.bytesTop });
    set(surface, { x: 48, y: TOP, width: right - 48, height: field });
    set(words[0], { x: 4, y: TOP - 7 });
    set(words[1], { x: 4, y: G.bytesTop - 8 });
    set(words[2], { x: right, y: height - 4, "text-anchor": "end" });
  }

  function drawField() {
    const gap = G.row > 7 ? 1 : 0;
    patch(lives, lifetimesOf(model.layers, model.cuts, model.moments), ({ layer, kind, from }) => `${layer} ${kind} ${from}`,
      () => shape("rect"), (rect, { layer, kind, from, to }) => {
        const edge = kind === "backward" ? 0.5 : 0;
        set(rect, {
          class: `life ${kind}`, x: LEFT + from * G.column + edge, width: Math.max((to - from) * G.column - 2 * edge, 1),
          y: rowOf(layer) + gap + edge, height: Math.max(G.row - gap - 2 * edge, 1), "stroke-width": G.outline,
        });
      });
    patch(brackets, model.cuts, (start) => start, () => shape("path", { class: "bracket" }), (path, start) => {
      const end = model.cuts[model.cuts.indexOf(start) + 1] ?? model.layers, high = rowOf(end - 1) + 3, low = rowOf(start - 1) - 2;
      set(path, { d: `M${LEFT - 6} ${high}H${LEFT - 14}V${low}H${LEFT - 6}` });
    });
    patch(cuts, model.cuts.slice(1), (start) => start, () => shape("line", { class: "cut" }), (cut, start) => {
      const y = rowOf(start - 1);
      set(cut, { x1: LEFT - 3, x2: G.right, y1: y, y2: y });
    });
    const step = 2 ** Math.max(0, Math.ceil(Math.log2(15 / G.row))), named = [-1];
    for (let layer = step - 1; layer < model.layers; layer += step) named.push(layer);
    patch(rows, named, (layer) => layer, () => shape("text", { class: "tick end" }), (words, layer) => {
      set(words, { x: LEFT - 20, y: rowOf(layer) + G.row / 2 + 4 });
      setText(words, layer < 0 ? text("chain.input") : String(layer + 1));
    });
  }

  function drawBytes() {
    const gap = G.column > 5 ? 1 : 0, best = highest(model.moments);
    patch(bars, model.moments.map((moment, at) => ({ ...moment, at })), ({ at }) => at, () => shape("rect"), (rect, { kind, peak, at }) => {
      const edge = kind === "backward" ? 0.5 : 0;
      set(rect, {
        class: `bar life ${kind}`, x: LEFT + at * G.column + edge, width: Math.max(G.column - gap - 2 * edge, 0.5),
        y: yOf(peak) + edge, height: peak * G.scale - edge, "stroke-width": G.outline,
      });
    });
    const ticks = ticksOf(model.most / 1024, Math.max(2, (G.bottom - G.bytesTop) / 26));
    patch(levels, ticks, (kib) => kib, () => shape("text", { class: "tick end" }), (words, kib) => {
      set(words, { x: LEFT - 8, y: yOf(kib * 1024) + 4 });
      setText(words, String(kib));
    });
    const moments = ticksOf(3 * model.layers - 1, (G.right - LEFT) / 60);
    patch(columns, moments, (at) => at, () => shape("text", { class: "tick middle" }), (words, at) => {
      set(words, { x: LEFT + at * G.column, y: G.bottom + 15 });
      setText(words, String(at));
    });
    const x = LEFT + (best + 0.5) * G.column;
    set(mark, { x: Math.min(x, G.right - 80), y: yOf(model.moments[best].peak) - 4, "text-anchor": x < LEFT + 70 ? "start" : "middle" });
    setText(mark, `▾ ${text("chain.peak", { peak: formatBytes(model.moments[best].peak) })}`);
  }

  function drawBudget() {
    const bytes = model.budget || model.most, y = yOf(bytes), kib = (bytes / 1024).toFixed(2);
    set(slider, {
      class: model.budget ? "set" : "none", "aria-valuemin": STEP, "aria-valuemax": model.most, "aria-valuenow": bytes,
      "aria-valuetext": text(model.budget ? "chain.budgetValue" : "chain.budgetNoneValue", { kib }),
    });
    set(hit, { x: LEFT, width: G.right - LEFT + RIGHT, y: y - 22, height: 44 });
    set(line, { x1: LEFT, x2: G.right, y1: y, y2: y });
    set(grip, { x: G.right - 24, y: y - 7 });
    set(arrows, { d: `M${G.right - 13} ${y - 2}l4 -3l4 3M${G.right - 13} ${y + 2}l4 3l4 -3` });
    set(label, { x: G.right - 30, y: y < G.bytesTop + 24 ? y + 15 : y - 6 });
    setText(label, model.budget ? text("chain.budgetLine", { bytes: formatBytes(model.budget) }) : text("chain.budgetNone"));
  }

  // Draws {layers, cuts, moments, budget, most}, where `most` is the peak without checkpoints.
  element.draw = (next) => {
    model = next;
    measure();
    drawField();
    drawBytes();
    drawBudget();
  };
  return element;
}
