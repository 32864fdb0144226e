// Draws the plane of gradients: axes, the full gradient, one point per throw, and the path of the last throw.
import { patch, set, setText, shape } from "./elements.js";
import { placeIn, ticksOf } from "./noise_model.js";
import { text } from "./texts.js";

const SIDE = 480;
const FRAMES = [{ reach: 5, step: 1 }, { reach: 0.5, step: 0.1 }]; // usual, and zoomed in
const MOST_HEADS = 16; // arrows of a path with more parts are too short for heads

const around = (value) => Math.max(0, Math.min(SIDE, value));

// Returns the two strokes of an arrow's head at the end of a line, in pixels.
function headOf(from, to) {
  const length = Math.hypot(to.x - from.x, to.y - from.y);
  if (length < 3) return "";
  const size = Math.min(11, 0.45 * length), [ux, uy] = [(to.x - from.x) / length, (to.y - from.y) / length];
  const stroke = (side) => `M${to.x} ${to.y}L${to.x - size * (ux + side * 0.5 * uy)} ${to.y - size * (uy - side * 0.5 * ux)}`;
  return stroke(1) + stroke(-1);
}

// Returns the part of a path that is drawn after the share `u` of its time. All its arrows take the same time.
function partOf(path, u) {
  const at = u * (path.length - 1), whole = Math.floor(at), rest = at - whole;
  const corners = path.slice(0, whole + 1);
  if (whole < path.length - 1 && rest > 0) {
    const [x, y] = path[whole], [nextX, nextY] = path[whole + 1];
    corners.push([x + rest * (nextX - x), y + rest * (nextY - y)]);
  }
  return corners;
}

export function makePlane() {
  const clip = shape("clipPath", { id: "plane-clip" }, shape("rect", { width: SIDE, height: SIDE }));
  const across = shape("line", { class: "axis" }), up = shape("line", { class: "axis" });
  const ticks = shape("g", { class: "ticks" }), micro = shape("g"), points = shape("g");
  const spread = shape("circle", { class: "spread" });
  const full = shape("g", { class: "full-gradient" }, shape("circle", { r: 9 }), shape("circle", { r: 2.5 }));
  const walk = shape("polyline", { class: "walk" }), heads = shape("path", { class: "walk" }), latest = shape("circle", { class: "latest", r: 6 });
  const names = [shape("text", { x: SIDE - 6, "text-anchor": "end" }, text("noise.horizontal")), shape("text", {}, text("noise.vertical"))];
  const element = shape("svg", { class: "plane", id: "plane", viewBox: `0 0 ${SIDE} ${SIDE}`, role: "img" }, shape("defs", {}, clip),
    shape("rect", { class: "frame", x: 0.5, y: 0.5, width: SIDE - 1, height: SIDE - 1 }),
    shape("g", { "clip-path": "url(#plane-clip)" }, across, up, ticks, ...names, micro, points, spread, full, walk, heads, latest));

  function drawAxes(middle, { reach, step }, zero) {
    const [axisX, axisY] = [around(zero.x), around(zero.y)];
    set(across, { x1: 0, x2: SIDE, y1: axisY, y2: axisY });
    set(up, { y1: 0, y2: SIDE, x1: axisX, x2: axisX });
    const scale = SIDE / 2 / reach, under = Math.min(axisY + 16, SIDE - 6);
    const toRight = axisX < SIDE - 40;
    const marks = [0, 1].flatMap((axis) => ticksOf(middle[axis], reach, step).map((value) => ({ axis, value })));
    patch(ticks, marks, ({ axis, value }) => `${axis} ${value}`, () => shape("g", {}, shape("line"), shape("text")), (mark, { axis, value }) => {
      const place = axis === 0 ? SIDE / 2 + (value - middle[0]) * scale : SIDE / 2 - (value - middle[1]) * scale;
      const [line, words] = mark.children, long = Math.round(value / step) % 2 === 0;
      const nearEdge = place < 12 || place > SIDE - 12;
      if (axis === 0) {
        set(line, { x1: place, x2: place, y1: axisY - 4, y2: axisY + 4 });
        set(words, { x: place, y: under, "text-anchor": "middle" });
      } else {
        set(line, { y1: place, y2: place, x1: axisX - 4, x2: axisX + 4 });
        set(words, { x: toRight ? axisX + 8 : axisX - 8, y: place + 4, "text-anchor": toRight ? "start" : "end" });
      }
      const isZero = value === 0, isHidden = !long || nearEdge || (isZero && axis === 1);
      if (isZero && axis === 0) set(words, { x: place - 9 });
      setText(words, isHidden ? "" : String(value).replace("-", "\u2212"));
    });
    set(names[0], { y: axisY > SIDE - 40 ? axisY - 8 : axisY + 34 });
    set(names[1], toRight ? { x: axisX + 8, y: 16, "text-anchor": "start" } : { x: axisX - 8, y: 16, "text-anchor": "end" });
  }

  // Shows {full, means, last, spread, near, u, label}. `last` is the last throw, and `u` says which share of its path is drawn.
  function draw(model) {
    const frame = FRAMES[model.near], middle = model.full;
    const place = (point) => {
      const scale = SIDE / 2 / frame.reach;
      return { x: SIDE / 2 + (point[0] - middle[0]) * scale, y: SIDE / 2 - (point[1] - middle[1]) * scale };
    };
    drawAxes(middle, frame, place([0, 0]));
    const center = place(middle);
    set(full, { transform: `translate(${center.x} ${center.y})` });
    set(spread, { cx: center.x, cy: center.y, r: (model.spread ?? 0) * SIDE / 2 / frame.reach, visibility: model.spread ? "visible" : "hidden" });
    const places = model.means.map((mean, index) => ({ index, ...placeIn(mean, middle, frame.reach, SIDE) }));
    const landed = model.u < 1 ? places.slice(0, -1) : places;
    patch(points, landed, ({ index, outside }) => `${index}${outside}`,
      ({ outside }) => outside ? shape("path", { class: "outside", d: "M7 0L-5 -5L-5 5Z" }) : shape("circle", { class: "thrown", r: 4 }),
      (mark, { x, y, outside, angle }) => set(mark, outside ? { transform: `translate(${x} ${y}) rotate(${angle})` } : { cx: x, cy: y }));
    drawLast(model, place);
    set(element, { "aria-label": model.label });
    return places.filter(({ outside }) => outside).length;
  }

  function drawLast({ last, u }, place) {
    const corners = last ? partOf(last.path, u).map(place) : [];
    set(walk, { points: corners.map(({ x, y }) => `${x},${y}`).join(" ") });
    const hasHeads = last && last.micro.length <= MOST_HEADS;
    set(heads, { d: hasHeads ? corners.slice(1).map((to, i) => headOf(corners[i], to)).join("") : "" });
    const shown = last && last.micro.length > 1 ? last.micro.slice(0, corners.length - 1).map(place) : [];
    patch(micro, shown.map((at, i) => ({ i, at })), ({ i }) => i, () => shape("circle", { class: "micro-batch", r: 4 }),
      (mark, { at }) => set(mark, { cx: at.x, cy: at.y }));
    const end = corners.at(-1);
    set(latest, { visibility: last && u === 1 ? "visible" : "hidden", ...(end ? { cx: end.x, cy: end.y } : {}) });
  }

  return { element, draw };
}
