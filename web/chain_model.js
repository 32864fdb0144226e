// Computes segments, the lifetimes of outputs, and frontiers of a chain of layers. Needs no browser.

// A segmentation is a list of starts: the first layer of each segment, counted from 0. The first start is 0.

export function sizesOf(layers, cuts) {
  return cuts.map((start, i) => (cuts[i + 1] ?? layers) - start);
}

export function startsOf(sizes) {
  let start = 0;
  return sizes.map((size) => (start += size) - size);
}

// Returns 1 for each layer that starts a segment, and else 0, as the engine expects.
export function flagsOf(layers, cuts) {
  const flags = Array(layers).fill(0);
  for (const start of cuts) flags[start] = 1;
  return flags;
}

export const everyStarts = (layers, size) => Array.from({ length: Math.ceil(layers / size) }, (_, i) => i * size);

// Cuts into segments whose sizes differ by at most one. The longer segments come first, as in the engine's even_segments().
export function evenStarts(layers, segments) {
  const size = Math.floor(layers / segments), longer = layers % segments;
  return startsOf(Array.from({ length: segments }, (_, i) => size + (i < longer ? 1 : 0)));
}

export const rootOf = (layers) => Math.max(1, Math.round(Math.sqrt(layers)));

// The segmentations of the buttons: no checkpoints, segments of 4, as many segments as the root, and one segment per layer.
export const presetsOf = (layers) => [[0], everyStarts(layers, 4), evenStarts(layers, rootOf(layers)), everyStarts(layers, 1)];

export const presetOf = (layers, cuts) => presetsOf(layers).findIndex((starts) => String(starts) === String(cuts));

// Returns the cuts for another number of layers. The segmentation of a button stays that of the button.
export function resized(layers, cuts, next) {
  const preset = presetOf(layers, cuts);
  return preset >= 0 ? presetsOf(next)[preset] : cuts.filter((start) => start < next);
}

export function toggleCut(cuts, start) {
  return cuts.includes(start) ? cuts.filter((one) => one !== start) : [...cuts, start].sort((a, b) => a - b);
}

// Moves a cut. A move onto another cut or outside the chain changes nothing.
export function moveCut(layers, cuts, from, to) {
  if (from < 1 || to < 1 || to >= layers || !cuts.includes(from) || cuts.includes(to)) return cuts;
  return toggleCut(toggleCut(cuts, from), to);
}

// Explains a segmentation: "none" has one segment, "each" has one segment per layer, and the others are "some".
export const kindOf = (layers, cuts) => cuts.length === 1 ? "none" : cuts.length === layers ? "each" : "some";

// Returns when outputs are in memory: {layer, kind, from, to}. `from` and `to` are indices of moments, and the output is in memory
// at the end of the moments from, ..., to - 1. Layer -1 is the input of the chain. The kind "backward" marks the backward moment.
export function lifetimesOf(layers, cuts, moments) {
  const lastStart = cuts.at(-1);
  const backward = [];
  moments.forEach(({ kind, layer }, at) => { if (kind === "backward") backward[layer] = at; });
  // Inside a segment that runs again, an output stays only until the next layer has run. The last output of a segment is the
  // input of the next segment, so it stays.
  const isKept = (layer) => layer >= lastStart || cuts.includes(layer + 1);
  const lifetimes = [{ layer: -1, kind: "forward", from: 0, to: backward[0] }];
  moments.forEach(({ kind, layer }, from) => {
    const stays = kind === "again" ? !isKept(layer) : isKept(layer);
    lifetimes.push({ layer, kind, from, to: kind !== "backward" && stays ? backward[layer] : from + 1 });
  });
  return lifetimes;
}

export const highest = (moments) => moments.reduce((best, moment, at) => moment.peak > moments[best].peak ? at : best, 0);

// Returns the points {peak, again} that no other point beats in both numbers, ordered by their peak.
export function frontierOf(points) {
  const sorted = [...points].sort((a, b) => a.peak - b.peak || a.again - b.again);
  let least = Infinity;
  return sorted.filter((point) => point.again < least && ((least = point.again), true));
}

// Returns round numbers from 0 to at most `most`, about `count` of them.
export function ticksOf(most, count) {
  const step = [1, 2, 4, 5, 8, 10, 16, 20, 25, 32, 50, 100, 200].find((one) => most / one <= count) ?? 500;
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, i) => i * step);
}

// Limits a budget to whole steps from `step` to `most`. A budget that needs no checkpoints is 0, which means none.
export function budgetOf(bytes, most, step) {
  const rounded = Math.max(step, Math.round(bytes / step) * step);
  return rounded >= most ? 0 : rounded;
}
