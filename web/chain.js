// Shows a chain of layers that is cut into segments: memory, recomputation, a budget, and the learner's tries.
import { ask } from "./calls.js";
import * as model from "./chain_model.js";
import { STEP, dragCuts, makeLegend, makePicture } from "./chain_picture.js";
import { makeTries } from "./chain_tries.js";
import { choices, fillTable, make, numberField, patch, set, setText } from "./elements.js";
import { formatBytes, parseNumber } from "./numbers.js";
import { change, endGesture, now } from "./store.js";
import { text } from "./texts.js";

const MOST_AGAIN = 2.5; // the small plot shows Revolve up to this many repeated runs per layer
const PAUSE = 200; // milliseconds after a change until the page measures more
const SLICE = 8; // milliseconds that the frontier may take at once, so that dragging stays smooth
const answers = new Map(); // of the engine, which depend only on the arguments

function remembered(key, f) {
  if (!answers.has(key)) {
    if (answers.size > 2000) answers.clear();
    answers.set(key, f());
  }
  return answers.get(key);
}

const chainKey = (layers, cuts) => `chain ${layers} ${cuts}`;
const revolveKey = (layers, snapshots) => `revolve ${layers} ${snapshots}`;
const runOf = (layers, cuts) => remembered(chainKey(layers, cuts), () =>
  ask("chain", Int32Array.from(model.flagsOf(layers, cuts)), layers));
const fitOf = (layers, bytes) => remembered(`fit ${layers} ${bytes}`, () => ask("chain_fit", layers, bytes));
const revolveOf = (layers, snapshots) => remembered(revolveKey(layers, snapshots), () => ask("chain_revolve", layers, snapshots));
const plainOf = (layers) => runOf(layers, [0]);

function cutInto(cuts, name = null) {
  if (String(cuts) === String(now().chain.cuts)) return false;
  change({ chain: { cuts } }, name);
  return true;
}

// The engine chooses the segments for a budget. If no segments fit, it returns those that need the fewest bytes.
function setBudget(bytes, name) {
  const { layers } = now().chain;
  const budget = model.budgetOf(bytes, plainOf(layers).peak, STEP);
  change({ chain: { budget, cuts: budget ? model.startsOf(fitOf(layers, budget).sizes) : [0] } }, name);
}

function setLayers(layers) {
  const { chain } = now();
  if (layers !== chain.layers) change({ chain: { layers, cuts: model.resized(chain.layers, chain.cuts, layers), budget: 0 } });
}

const readLayers = (words) => {
  const value = parseNumber(words);
  if (words.trim() === "") return { wrong: text("field.empty") };
  if (Number.isNaN(value)) return { wrong: text("field.notNumber", { what: text("chain.layersName"), text: words.trim() }) };
  if (!Number.isInteger(value) || value < 2 || value > 64)
    return { wrong: text("field.notWhole", { what: text("chain.layersName"), least: 2, most: 64, text: words.trim() }) };
  return { value };
};

let view = null;
let gap = 1; // the gap of the strip that the Tab key reaches

const hands = {
  isCut: (start) => now().chain.cuts.includes(start),
  toggle: (start) => cutInto(model.toggleCut(now().chain.cuts, start)),
  move: (from, to, name = "cut") => cutInto(model.moveCut(now().chain.layers, now().chain.cuts, from, to), name),
  budget: setBudget,
  end: endGesture,
};

function focusGap(to) {
  gap = Math.max(1, Math.min(now().chain.layers - 1, to));
  drawStrip(now().chain);
  view.strip.querySelector(`[data-gap="${gap}"]`).focus();
}

function pressKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || !event.target.dataset.gap) return;
  const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  const from = Number(event.target.dataset.gap);
  const to = { Home: 1, End: now().chain.layers - 1 }[event.key] ?? (by && from + by);
  if (to === undefined) return;
  event.preventDefault();
  if (!event.shiftKey) focusGap(to);
  else if (hands.move(from, to, null)) focusGap(to);
}

// The strip shows the chain as a row of layers. Between two layers there is a button that cuts there.
function makeStrip() {
  const strip = make("div", { class: "strip", role: "toolbar", "aria-label": text("chain.strip"), onkeydown: pressKey });
  const gapAt = ({ type, target, clientX, clientY }) => {
    const element = type === "pointermove" ? document.elementFromPoint(clientX, clientY) : target;
    return Number(element?.closest?.("#chain .gap")?.dataset.gap ?? 0);
  };
  dragCuts(strip, gapAt, hands);
  return strip;
}

function drawStrip({ layers, cuts }) {
  gap = Math.min(gap, layers - 1);
  patch(view.strip, Array.from({ length: layers }, (_, layer) => layer), (layer) => layer, (layer) => {
    const button = make("button", {
      type: "button", class: "gap", "data-gap": layer + 1, "aria-label": text("chain.gap", { before: layer + 1, after: layer + 2 }),
    });
    return make("span", { class: "unit" }, make("span", { class: "layer" }, String(layer + 1)), button);
  }, (unit, layer) => {
    const [name, button] = unit.children, isLast = layer === layers - 1;
    set(name, { class: `layer${cuts.includes(layer) ? " first" : ""}${isLast || cuts.includes(layer + 1) ? " last" : ""}` });
    set(button, { hidden: isLast, "aria-pressed": String(cuts.includes(layer + 1)), tabindex: layer + 1 === gap ? 0 : -1 });
  });
}

export function build(section) {
  const presets = choices(text("chain.presets"), text("chain.presetNames", { layers: now().chain.layers }),
    (i) => cutInto(model.presetsOf(now().chain.layers)[i]));
  const layers = numberField({ id: "layers", "aria-label": text("chain.layersName"), inputmode: "numeric" }, readLayers, setLayers);
  const strip = makeStrip(), picture = makePicture(hands), tries = makeTries();
  const words = make("p", { id: "chain-words", class: "verdict", role: "status" });
  const table = make("table", { id: "chain-table" }, make("caption", {}, text("chain.table")));
  section.append(
    make("div", { class: "bar" }, make("h2", {}, text("chain.title")),
      make("div", { class: "group" }, make("span", { class: "quiet" }, text("chain.layers")), layers),
      make("div", { class: "group" }, make("span", { class: "quiet" }, text("chain.presets")), presets)),
    make("p", { class: "quiet lead" }, text("chain.lead")),
    strip,
    make("div", { class: "work" },
      make("div", {}, picture, makeLegend(["forward", "again", "backward"], text("chain.legend")), words),
      make("div", { class: "side" }, tries, table)));
  view = { section, presets, layers, strip, picture, tries, words, table };
  addEventListener("resize", () => { if (!section.hidden) update(now()); });
}

// ---- the tries, and the frontiers, which are measured when nothing else happens ----

const triesOf = new Map(), frontiers = new Map(); // for each number of layers
let measuring = 0;

function noteTry(layers, { peak, again }) {
  if (!triesOf.has(layers)) triesOf.set(layers, new Map());
  triesOf.get(layers).set(`${peak} ${again}`, { peak, again });
}

function frontierFor(layers) {
  if (!frontiers.has(layers)) frontiers.set(layers, { equal: [], revolve: [], segments: 1, snapshots: layers });
  return frontiers.get(layers);
}

// Measures one more point of each frontier. Few snapshots need many runs, so the loop begins with many snapshots.
function extend(frontier, layers) {
  if (frontier.segments <= layers) frontier.equal.push(runOf(layers, model.evenStarts(layers, frontier.segments++)));
  if (frontier.snapshots === 0) return;
  const point = revolveOf(layers, frontier.snapshots--);
  if (point.again <= MOST_AGAIN * layers) frontier.revolve.push(point);
  else frontier.snapshots = 0;
}

const isMeasured = (frontier, layers) => frontier.segments > layers && frontier.snapshots === 0;

function measureSoon(pause) {
  clearTimeout(measuring);
  measuring = setTimeout(() => {
    const { layers } = now().chain, frontier = frontierFor(layers), begun = performance.now();
    if (view.section.hidden) return;
    showResults(now().chain, true);
    if (isMeasured(frontier, layers)) return;
    while (!isMeasured(frontier, layers) && performance.now() - begun < SLICE) extend(frontier, layers);
    drawTries(now().chain);
    measureSoon(0);
  }, pause);
}

function drawTries({ layers, cuts }) {
  const { equal, revolve } = frontierFor(layers), tries = [...triesOf.get(layers).values()];
  view.tries.draw({
    run: runOf(layers, cuts), tries, equal: model.frontierOf(equal), revolve: model.frontierOf(revolve),
    mostBytes: plainOf(layers).peak, mostAgain: MOST_AGAIN * layers,
  });
}

// ---- words and table ----

function budgetWords({ layers, budget }, run) {
  if (!budget) return [];
  const fit = fitOf(layers, budget), values = { budget: formatBytes(budget), least: formatBytes(fit.peak) };
  if (run.peak <= budget) return [text("chain.sayFits", values)];
  return [text(fit.fits ? "chain.sayTooMuch" : "chain.sayNothingFits", values)];
}

function showWords(chain, run, rows) {
  const kind = model.kindOf(chain.layers, chain.cuts);
  const lines = [
    ...budgetWords(chain, run),
    text("chain.sayPeak", { peak: formatBytes(run.peak), again: run.again }),
    ...kind === "none" ? [text("chain.sayNone")] : kind === "each" ? [text("chain.sayEach")] : [],
    text(rows.every((row) => row?.same ?? true) ? "chain.saySame" : "chain.sayDiffers"),
  ];
  setText(view.words, lines.join(" "));
}

const inWords = (sizes) => sizes.length > 12 ? `${sizes.slice(0, 11).join(" + ")} + …` : sizes.join(" + ");

function showTable(names, rows) {
  fillTable(view.table, rows.map((row, i) => [names[i], row ? formatBytes(row.peak) : "…", row ? row.again : "…"]), text("chain.head"));
}

// Shows the sentence and the table. While the learner drags, the table shows only the runs that are known already.
function showResults(chain, paused) {
  const { layers, cuts } = chain, run = runOf(layers, cuts), { sizes } = fitOf(layers, run.peak);
  const best = model.startsOf(sizes), snapshots = cuts.length;
  const rows = [plainOf(layers), run, paused || answers.has(chainKey(layers, best)) ? runOf(layers, best) : null,
    paused || answers.has(revolveKey(layers, snapshots)) ? revolveOf(layers, snapshots) : null];
  showWords(chain, run, rows);
  showTable([
    text("chain.rowNone"),
    text("chain.rowYours", { sizes: inWords(model.sizesOf(layers, cuts)) }),
    text("chain.rowBest", { sizes: inWords(sizes) }),
    text("chain.rowRevolve", { n: snapshots }),
  ], rows);
}

export function update({ chain }) {
  const { layers, cuts, budget } = chain;
  const run = runOf(layers, cuts);
  noteTry(layers, run);
  text("chain.presetNames", { layers }).forEach((name, i) => setText(view.presets.children[i], name));
  view.presets.choose(model.presetOf(layers, cuts));
  view.layers.put(String(layers));
  drawStrip(chain);
  view.picture.draw({ layers, cuts, budget, moments: run.moments, most: plainOf(layers).peak });
  showResults(chain, false);
  drawTries(chain);
  measureSoon(PAUSE);
}
