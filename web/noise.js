// The noise of gradients: throw micro-batches, accumulate them, and find how far they land from the gradient of all items.
import { ask } from "./calls.js";
import { choices, make, numberField, set, setText } from "./elements.js";
import { ITEMS, dotsOf, drawsToAsk, exponentOf, isLawFound, meansOf, mostThrows, nextStep, pairOf } from "./noise_model.js";
import { slopeOf, spreadAtOne, spreadOf, spreadText, thrownBefore, throwAt, withEntry } from "./noise_model.js";
import { makePlane } from "./noise_plane.js";
import { makePlot, nameOf } from "./noise_plot.js";
import { parseNumber, valueOf } from "./numbers.js";
import { change, endGesture, now } from "./store.js";
import { text } from "./texts.js";

const HOLD = 350; // milliseconds until a held press throws many
const FLIGHT = 450, MOST_FLIGHT = 1200; // milliseconds of one arrow, and of all arrows of a throw
const MOST_COUNT = 64, MOST_SEED = 1_000_000;
const PRESETS = [[8, 1], [64, 1], [16, 4], [4, 16], [512, 1]]; // size and count

// ---- the engine's draws: the longest list of each seed and size is kept ----

const drawn = new Map();
const MOST_KEPT = 100;

function drawsOf(seed, size, draws) {
  const key = `${seed} ${size}`;
  if (!drawn.has(key) || drawn.get(key).points.length < draws) {
    if (drawn.size >= MOST_KEPT) drawn.clear();
    const { full, points } = ask("noise", seed, size, drawsToAsk(draws));
    drawn.set(key, { full: full.map(valueOf), points: points.map((point) => point.map(valueOf)) });
  }
  return drawn.get(key);
}

// Returns what `thrown` throws of a setting gave.
function cloudOf({ seed, size, count }, thrown) {
  const { full, points } = drawsOf(seed, size, Math.max(1, count * thrown));
  const means = meansOf(points, count, thrown);
  return { full, means, spread: spreadOf(means, full), last: thrown ? throwAt(points, count, thrown - 1) : null };
}

// Returns the list of all settings that were thrown, with the present one.
const withPresent = (noise, thrown = noise.thrown) =>
  withEntry(noise.found, [noise.size, noise.count, thrown, cloudOf(noise, thrown).spread]);

// ---- changes ----

function choose(size, count, name = null) {
  const { noise } = now();
  const found = withPresent(noise);
  change({ noise: { size, count, found, thrown: thrownBefore(found, size, count) } }, name);
}

function throwOne(name = null) {
  const { noise } = now();
  if (noise.thrown >= mostThrows(noise.count)) return false;
  const thrown = noise.thrown + 1;
  flight.wanted = name === null;
  change({ noise: { thrown, found: withPresent(noise, thrown) } }, name);
  flight.wanted = false;
  return true;
}

// Another seed means other items, so the dots of the old seed are no longer comparable.
const chooseSeed = (seed) => change({ noise: { seed, thrown: 0, found: [] } });

// ---- throwing: a short press throws once, and a long press throws many ----

const held = { timer: 0, many: false, key: null };

function press() {
  clearTimeout(held.timer);
  held.many = false;
  held.timer = setTimeout(throwMany, HOLD, 0);
}

function throwMany(times) {
  held.many = true;
  set(view.words, { "aria-busy": "true" }); // announces the result only, not each throw
  if (view.section.hidden || !throwOne("throw")) return;
  held.timer = setTimeout(throwMany, Math.max(25, 110 - 4 * times), times + 1);
}

// Ends a press, and returns whether it threw many.
function release() {
  const threwMany = held.many;
  clearTimeout(held.timer);
  held.timer = 0;
  held.many = false;
  if (threwMany) {
    endGesture();
    set(view.words, { "aria-busy": "false" });
  }
  return threwMany;
}

function throwsByPointer(element) {
  let threwMany = false;
  element.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    press();
    const end = () => {
      threwMany = release();
      setTimeout(() => { threwMany = false; }); // after the click that follows
      for (const name of ["pointerup", "pointercancel", "blur"]) removeEventListener(name, end);
    };
    for (const name of ["pointerup", "pointercancel", "blur"]) addEventListener(name, end);
  });
  element.addEventListener("click", () => { if (!threwMany) throwOne(); });
  element.addEventListener("contextmenu", (event) => { if (held.timer) event.preventDefault(); });
}

// Space throws with any focus that does not use Space itself. Enter throws with the focus on the button.
function throwsByKeys() {
  const isThrow = ({ key, target }) => target === view.button ? key === " " || key === "Enter"
    : key === " " && now().part === "noise" && !target.closest?.("button, a, select, input:not([type=range])");
  addEventListener("keydown", (event) => {
    if (!isThrow(event) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    if (event.repeat || held.key) return;
    held.key = event.key;
    press();
  });
  addEventListener("keyup", (event) => {
    if (!held.key || event.key !== held.key) return;
    event.preventDefault(); // else the button would be clicked as well
    held.key = null;
    if (!release()) throwOne();
  });
  addEventListener("blur", () => {
    held.key = null;
    release();
  });
}

// ---- the flight of the last throw ----

const flight = { wanted: false, frame: 0, u: 1 };

function fly(count) {
  cancelAnimationFrame(flight.frame);
  flight.u = 1;
  if (!flight.wanted || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const begun = performance.now(), length = Math.min(MOST_FLIGHT, FLIGHT * (1 + (count - 1) / 4));
  const tick = (time) => {
    flight.u = Math.min(1, Math.max(0, (time - begun) / length));
    drawPlane(now().noise);
    if (flight.u < 1) flight.frame = requestAnimationFrame(tick);
  };
  flight.u = 0;
  flight.frame = requestAnimationFrame(tick);
}

// ---- the part ----

let view = null;

const readWhole = (what, least, most) => (words) => {
  if (words.trim() === "") return { wrong: text("noise.empty", { least, most }) };
  const value = parseNumber(words);
  if (Number.isNaN(value)) return { wrong: text("field.notNumber", { what, text: words.trim() }) };
  if (!Number.isInteger(value) || value < least || value > most)
    return { wrong: text("field.notWhole", { what, least, most, text: words.trim() }) };
  return { value };
};

// A slider of powers of two, and a field for the same number.
function powerControl(name, most, onvalue) {
  const slider = make("input", {
    type: "range", id: `noise-${name}-slider`, min: 0, max: exponentOf(most), step: 1, "aria-label": text(`noise.${name}Slider`),
    oninput: () => onvalue(2 ** Number(slider.value), name), onchange: endGesture,
  });
  const short = text(`noise.${name}Short`);
  const field = numberField({ id: `noise-${name}`, "aria-label": text(`noise.${name}`), inputmode: "numeric" }, readWhole(short, 1, most),
    (value) => onvalue(value));
  const element = make("div", { class: "group power" }, make("label", { for: `noise-${name}` }, text(`noise.${name}Short`)), slider, field);
  const put = (value, isChanged) => {
    if (isChanged) field.clear();
    field.put(String(value));
    slider.value = exponentOf(value);
    set(slider, { "aria-valuetext": text(`noise.${name}Value`, { n: value }) });
  };
  return { element, put };
}

const sign = (kind, sample, key) =>
  make("span", {}, make("span", { class: kind, "aria-hidden": "true" }, sample), ` ${text(key)}`);

const plotLegend = () => make("span", { class: "legend quiet" },
  sign("thrown", "●", "noise.legendOne"), sign("micro-batch", "◆", "noise.legendMany"));

function planeLegend() {
  const micro = sign("micro-batch", "○", "noise.legendMicro");
  const outside = sign("outside", "▲", "noise.legendOutside");
  const element = make("figcaption", { class: "legend quiet" }, sign("full-gradient", "◎", "noise.legendFull"),
    sign("thrown", "●", "noise.legendThrow"), micro, sign("spread", "┄", "noise.legendSpread"), outside);
  return { element, micro, outside };
}

export function build(section) {
  const plane = makePlane(), plot = makePlot(), signs = planeLegend();
  const size = powerControl("size", ITEMS, (value, name) => choose(value, now().noise.count, name));
  const count = powerControl("count", MOST_COUNT, (value, name) => choose(now().noise.size, value, name));
  const seed = numberField({ id: "noise-seed", "aria-label": text("noise.seed"), inputmode: "numeric" },
    readWhole(text("noise.seed"), 0, MOST_SEED), chooseSeed);
  const presets = choices(text("noise.presets"), PRESETS.map(([items, parts]) => nameOf({ size: items, count: parts })),
    (i) => choose(...PRESETS[i]));
  const button = make("button", { type: "button", id: "throw", class: "key", "aria-keyshortcuts": "Space" }, text("noise.throw"));
  const action = (id, words, patchOf) =>
    make("button", { type: "button", id, onclick: () => change({ noise: patchOf(now().noise) }) }, text(words));
  const near = action("near", "noise.near", (noise) => ({ near: 1 - noise.near }));
  const restart = action("restart-noise", "noise.restart", () => ({ thrown: 0, found: [], law: 0 }));
  const law = action("law", "noise.showLaw", (noise) => ({ law: 1 - noise.law }));
  const lead = make("p", { id: "noise-lead", class: "lead" }), words = make("p", { id: "noise-words", role: "status" });
  const pair = make("p", { id: "noise-pair", role: "status" }), lawWords = make("p", { id: "law-words" });
  section.append(
    make("h2", {}, text("noise.title")), lead,
    make("div", { class: "bar controls" }, button, size.element, count.element,
      make("div", { class: "group" }, make("span", { class: "quiet" }, text("noise.presets")), presets),
      make("div", { class: "group" }, make("label", { for: "noise-seed" }, text("noise.seed")), seed), restart),
    make("div", { class: "pictures" },
      make("figure", { class: "cloud" }, plane.element, make("div", { class: "under" }, signs.element, near)),
      make("div", { class: "measured" }, words, pair,
        make("figure", { class: "found" }, make("figcaption", {}, text("noise.plotTitle"), plotLegend()), plot.element),
        make("div", { class: "bar" }, law, lawWords),
        make("p", { class: "quiet note-small" }, text("noise.note")))));
  view = { section, plane, plot, signs, size, count, seed, presets, button, near, restart, law, lead, words, pair, lawWords };
  throwsByPointer(button);
  throwsByPointer(plane.element);
  throwsByKeys();
}

const whatOf = ({ size, count }) => text(count === 1 ? "noise.ofOne" : "noise.of", { size, count });

function drawPlane(noise) {
  const cloud = cloudOf(noise, noise.thrown);
  const label = text("noise.plane", { n: noise.thrown, what: whatOf(noise) });
  return { cloud, outside: view.plane.draw({ ...cloud, near: noise.near, u: flight.u, label }) };
}

export function update(state, before) {
  const { noise } = state, old = before.noise;
  if (noise !== old) fly(noise.count);
  const { cloud, outside } = drawPlane(noise);
  const dots = dotsOf(withPresent(noise));
  view.size.put(noise.size, noise.size !== old.size);
  view.count.put(noise.count, noise.count !== old.count);
  if (noise.seed !== old.seed) view.seed.clear();
  view.seed.put(String(noise.seed));
  view.presets.choose(PRESETS.findIndex(([size, count]) => size === noise.size && count === noise.count));
  set(view.near, { "aria-pressed": String(noise.near === 1) });
  set(view.button, { "aria-disabled": noise.thrown >= mostThrows(noise.count) ? "true" : false });
  set(view.signs.micro, { hidden: noise.count === 1 });
  set(view.signs.outside, { hidden: outside === 0 });
  showWords(noise, cloud, outside, dots);
  showLaw(noise, dots);
}

function showWords(noise, { spread }, outside, dots) {
  const { key, values } = nextStep(noise, dots);
  setText(view.lead, text(`noise.${key}`, values));
  const what = whatOf(noise), n = noise.thrown;
  const lines = n === 0 ? [text("noise.none", { what })]
    : [text(n === 1 ? "noise.once" : "noise.measured", { n, what, spread: spreadText(spread) })];
  if (outside) lines.push(text("noise.outside", { n: outside }));
  if (n >= mostThrows(noise.count)) lines.push(text("noise.limit"));
  setText(view.words, lines.join(" "));
  const pair = pairOf(dots, noise.size, noise.count);
  setText(view.pair, pair ? pairWords(pair) : "");
}

const CLOSE = 0.2;

function pairWords({ many, one, apart }) {
  return text(apart < CLOSE ? "noise.pair" : "noise.pairApart", {
    count: many.count, size: many.size, items: one.size, many: spreadText(many.spread), one: spreadText(one.spread),
  });
}

function showLaw(noise, dots) {
  const isShown = dots.length > 0 && (noise.law === 1 || isLawFound(dots));
  const atOne = isShown ? spreadAtOne(dots) : null, slope = slopeOf(dots);
  view.plot.draw({ dots, size: noise.size, count: noise.count, atOne });
  set(view.law, { "aria-pressed": String(isShown), disabled: !dots.length, hidden: isLawFound(dots) });
  const lines = [];
  if (!dots.length) lines.push(text("noise.lawNone"));
  else if (!isShown) lines.push(text("noise.lawHidden"));
  else {
    lines.push(text("noise.lawLine", { spread: spreadText(atOne) }));
    if (slope !== null) lines.push(text("noise.lawSlope", { slope: slope.toFixed(2).replace("-", "−") }));
  }
  setText(view.lawWords, lines.join(" "));
}
