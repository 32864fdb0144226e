// Tests web/chain_model.js without a browser.
import assert from "node:assert";
import test from "node:test";
import * as model from "../../web/chain_model.js";

const LAYERS = 6;
const moments = (text) => text.split(" ").map((word) => {
  const [, kind, layer, peak, after] = /^([fab])(\d+):(\d+):(\d+)$/.exec(word);
  return { kind: { f: "forward", a: "again", b: "backward" }[kind], layer: Number(layer), peak: Number(peak), after: Number(after) };
});

// What the engine returned for 6 layers.
const RECORDED = [
  [[0], moments("f0:2048:2048 f1:3072:3072 f2:4096:4096 f3:5120:5120 f4:6144:6144 f5:7168:7168 " +
    "b5:8320:7232 b4:7232:6208 b3:6208:5184 b2:5184:4160 b1:4160:3136 b0:3136:64")],
  [[0, 2, 4], moments("f0:2048:2048 f1:3072:2048 f2:3072:3072 f3:4096:3072 f4:4096:4096 f5:5120:5120 b5:6272:5184 b4:5184:4160 " +
    "a2:5184:5184 a3:6208:5184 b3:5184:4160 b2:4160:3136 a0:4160:4160 a1:5184:4160 b1:4160:3136 b0:3136:64")],
];

// Returns the number of outputs in memory at the end of each moment, with the input of the chain.
function countsOf(lifetimes, moments) {
  const alive = moments.map(() => new Set());
  for (const { layer, kind, from, to } of lifetimes)
    if (kind !== "backward") for (let at = from; at < to; ++at) alive[at].add(layer);
  return alive.map((layers) => layers.size);
}

test("sizes and starts describe the same segments", () => {
  assert.deepEqual(model.sizesOf(10, [0, 3, 4]), [3, 1, 6]);
  assert.deepEqual(model.startsOf([3, 1, 6]), [0, 3, 4]);
  assert.deepEqual(model.flagsOf(5, [0, 3]), [1, 0, 0, 1, 0]);
});

test("buttons cut as their names say", () => {
  assert.deepEqual(model.everyStarts(10, 4), [0, 4, 8]);
  assert.deepEqual(model.evenStarts(10, 3), [0, 4, 7]);
  assert.deepEqual(model.presetsOf(9), [[0], [0, 4, 8], [0, 3, 6], [0, 1, 2, 3, 4, 5, 6, 7, 8]]);
  assert.equal(model.presetOf(9, [0, 3, 6]), 2);
  assert.equal(model.presetOf(9, [0, 5]), -1);
});

test("the segmentation of a button follows the number of layers", () => {
  assert.deepEqual(model.resized(16, [0, 4, 8, 12], 20), [0, 4, 8, 12, 16]);
  assert.deepEqual(model.resized(9, [0, 3, 6], 25), [0, 5, 10, 15, 20]);
  assert.deepEqual(model.resized(16, [0], 64), [0]);
  assert.deepEqual(model.resized(16, [0, 5, 11], 8), [0, 5]);
});

test("a cut is set, removed and moved", () => {
  assert.deepEqual(model.toggleCut([0, 8], 4), [0, 4, 8]);
  assert.deepEqual(model.toggleCut([0, 4, 8], 4), [0, 8]);
  assert.deepEqual(model.moveCut(10, [0, 4, 8], 4, 6), [0, 6, 8]);
  for (const [from, to] of [[4, 8], [4, 0], [4, 10], [0, 3], [5, 6]])
    assert.deepEqual(model.moveCut(10, [0, 4, 8], from, to), [0, 4, 8], `${from} to ${to}`);
});

test("the kind of a segmentation", () => {
  assert.equal(model.kindOf(4, [0]), "none");
  assert.equal(model.kindOf(4, [0, 1, 2, 3]), "each");
  assert.equal(model.kindOf(4, [0, 2]), "some");
});

test("lifetimes explain the bytes that the engine counted", () => {
  for (const [cuts, all] of RECORDED) {
    const counts = countsOf(model.lifetimesOf(LAYERS, cuts, all), all);
    const first = all.findIndex((moment) => moment.kind === "backward"), last = all.length - 1;
    all.forEach(({ after }, at) => {
      const rest = at < first ? 0 : at === last ? 64 : 1024 + 64; // one gradient of an output, and the loss
      assert.equal(after, 1024 * counts[at] + rest, `cuts ${cuts}, moment ${at}`);
    });
  }
});

test("an output inside a segment lives twice, and the input of a segment lives once", () => {
  const [cuts, all] = RECORDED[1];
  const of = (layer) => model.lifetimesOf(LAYERS, cuts, all).filter((one) => one.layer === layer)
    .map(({ kind, from, to }) => [kind, from, to]);
  assert.deepEqual(of(2), [["forward", 2, 3], ["again", 8, 11], ["backward", 11, 12]]);
  assert.deepEqual(of(3), [["forward", 3, 10], ["again", 9, 10], ["backward", 10, 11]]);
  assert.deepEqual(of(5), [["forward", 5, 6], ["backward", 6, 7]]);
  assert.deepEqual(of(-1), [["forward", 0, 15]]);
});

test("the highest moment is the first with the most bytes", () => {
  assert.equal(model.highest(RECORDED[0][1]), 6);
  assert.equal(model.highest([{ peak: 3 }, { peak: 5 }, { peak: 5 }]), 1);
});

test("a frontier keeps only points that no other point beats", () => {
  const points = [{ peak: 9, again: 0 }, { peak: 5, again: 8 }, { peak: 5, again: 9 }, { peak: 6, again: 8 }, { peak: 4, again: 20 }];
  assert.deepEqual(model.frontierOf(points), [{ peak: 4, again: 20 }, { peak: 5, again: 8 }, { peak: 9, again: 0 }]);
  assert.deepEqual(model.frontierOf([]), []);
});

test("ticks are round numbers", () => {
  assert.deepEqual(model.ticksOf(18, 5), [0, 4, 8, 12, 16]);
  assert.deepEqual(model.ticksOf(66, 5), [0, 16, 32, 48, 64]);
  assert.deepEqual(model.ticksOf(3, 5), [0, 1, 2, 3]);
});

test("a budget is a whole number of steps, and a large one is none", () => {
  assert.equal(model.budgetOf(5000, 8320, 256), 5120);
  assert.equal(model.budgetOf(-10, 8320, 256), 256);
  assert.equal(model.budgetOf(9000, 8320, 256), 0);
});
