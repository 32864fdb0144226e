// Draws the plane of gradients: axes, the full gradient, one point per throw, and the path of the last throw.
import { patch, set, setText, shape } from "./elements.js";
import { placeIn, ticksOf } from "./noise_model.js";
import { text } from "./texts.js";

const WIDTH = 580, HEIGHT = 480;
const FRAMES = [{ scale: 48, step: 1 }, { scale: 480, step: 0.1 }]; // pixels per unit: usual, and zoomed in
const MOST_HEADS = 16; // arrows of a path with more parts are too short for heads

const within = (value, most) => Math.max(0, Math.min(most, value));

// Returns the two strokes of an arrow's head at the end of a line, in pixels.
function headOf(from, to) {
  const length = Math.hypot(to.x - from.x, to.y - from.y);
  if (length < 7) return "";
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
  const middle = { cx: WIDTH / 2, cy: HEIGHT / 2 };
  const clip = shape("clipPath", { id: "plane-clip" }, shape("rect", { width: WIDTH, height: HEIGHT }));
  const across = shape("line", { class: "axis" }), up = shape("line", { class: "axis" });
  const ticks = shape("g", { class: "ticks" }), micro = shape("g"), points = shape("g");
  const halo = shape("circle", { class: "halo", ...middle }), spread = shape("circle", { class: "spread", ...middle });
  const full = [["halo", 9], ["full-gradient", 9], ["full-gradient", 2.5]]
    .map(([kind, r]) => shape("circle", { class: kind, r, ...middle }));
  const walk = shape("polyline", { class: "walk" }), heads = shape("path", { class: "walk" });
  const latest = shape("circle", { class: "latest", r: 6 });
  const names = [
    shape("text", { x: WIDTH - 7, "text-anchor": "end" }, text("noise.horizontal")),
    shape("text", { y: 17 }, text("noise.vertical")),
  ];
  const element = shape("svg", { class: "plane", id: "plane", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" }, shape("defs", {}, clip),
    shape("rect", { class: "frame", x: 0.5, y: 0.5, width: WIDTH - 1, height: HEIGHT - 1 }),
    shape("g", { "clip-path": "url(#plane-clip)" },
      across, up, micro, points, halo, spread, ...full, ticks, ...names, walk, heads, latest));

  function drawAxes(middle, { scale, step }, place) {
    const zero = place([0, 0]), axisX = within(zero.x, WIDTH), axisY = within(zero.y, HEIGHT);
    set(across, { x1: 0, x2: WIDTH, y1: axisY, y2: axisY });
    set(up, { y1: 0, y2: HEIGHT, x1: axisX, x2: axisX });
    const isLow = axisY > HEIGHT - 40, isRight = axisX > WIDTH - 40;
    const marks = [WIDTH, HEIGHT].flatMap((size, axis) => ticksOf(middle[axis], size / 2 / scale, step).map((value) => ({ axis, value })));
    const makeTick = () => shape("g", {}, shape("line"), shape("text"));
    patch(ticks, marks, ({ axis, value }) => `${axis} ${value}`, makeTick, (mark, { axis, value }) => {
      const [line, words] = mark.children, { x, y } = place(axis === 0 ? [value, 0] : [0, value]);
      if (axis === 0) {
        set(line, { x1: x, x2: x, y1: axisY - 4, y2: axisY + 4 });
        set(words, { x: value === 0 ? x - 9 : x, y: isLow ? axisY - 9 : axisY + 18, "text-anchor": "middle" });
      } else {
        set(line, { y1: y, y2: y, x1: axisX - 4, x2: axisX + 4 });
        set(words, { x: isRight ? axisX - 9 : axisX + 9, y: y + 5, "text-anchor": isRight ? "end" : "start" });
      }
      const isLong = Math.round(value / step) % 2 === 0, nearEdge = axis === 0 ? x < 12 || x > WIDTH - 12 : y < 30 || y > HEIGHT - 30;
      setText(words, isLong && !nearEdge && (axis === 0 || value !== 0) ? String(value).replace("-", "\u2212") : "");
    });
    set(names[0], { y: isLow ? axisY - 28 : axisY + 38 });
    set(names[1], axisX < WIDTH - 200 ? { x: axisX + 9, "text-anchor": "start" } : { x: axisX - 9, "text-anchor": "end" });
  }

  // Shows {full, means, last, spread, near, u, label}. `last` is the last throw, and `u` says which share of its path is drawn.
  // Returns how many points lie outside the frame.
  function draw(model) {
    const frame = FRAMES[model.near], middle = model.full;
    const place = ([x, y]) => ({ x: WIDTH / 2 + (x - middle[0]) * frame.scale, y: HEIGHT / 2 - (y - middle[1]) * frame.scale });
    drawAxes(middle, frame, place);
    const visibility = model.means.length > 1 ? "visible" : "hidden";
    for (const ring of [spread, halo]) set(ring, { r: (model.spread ?? 0) * frame.scale, visibility });
    const places = model.means.map((mean, index) => ({ index, ...placeIn(mean, middle, frame.scale, [WIDTH, HEIGHT]) }));
    const landed = model.u < 1 ? places.slice(0, -1) : places;
    patch(points, landed, ({ index, x, y }) => `${index} ${x} ${y}`, makePoint); // a point never moves, so it needs no update
    drawLast(model, place);
    set(element, { "aria-label": model.label });
    return places.filter(({ outside }) => outside).length;
  }

  function makePoint({ x, y, outside, angle }) {
    if (outside) return shape("path", { class: "outside", d: "M7 0L-5 -5L-5 5Z", transform: `translate(${x} ${y}) rotate(${angle})` });
    return shape("circle", { class: "thrown", r: 4, cx: x, cy: y });
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
