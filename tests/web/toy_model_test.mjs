// Tests web/toy_model.js: cuts, weights, and the explanation of a wrong gradient.
import assert from "node:assert";
import test from "node:test";

import { PRESETS, compare, gapsOf, largerSizes, mistakeOf, moveCut, sizesOf, toggleCut, weightsOf } from "../../web/toy_model.js";

const everyCut = [...Array(32).keys()].map((bits) => sizesOf([0, 1, 2, 3, 4].map((gap) => Boolean(bits >> gap & 1))));

test("sizesOf: is the inverse of gapsOf for all 32 cuts", () => {
  assert.strictEqual(new Set(everyCut.map(String)).size, 32);
  for (const sizes of everyCut) assert.deepStrictEqual(sizesOf(gapsOf(sizes)), sizes);
});

test("moveCut: moves one cut, and never onto another one", () => {
  assert.deepStrictEqual(moveCut([2, 4], 1, 2), [3, 3]);
  assert.deepStrictEqual(moveCut([2, 2, 2], 1, 3), [2, 2, 2]);
  assert.deepStrictEqual(moveCut([2, 4], 1, 5), [2, 4]);
  assert.deepStrictEqual(toggleCut([6], 3), [4, 2]);
  assert.deepStrictEqual(toggleCut([4, 2], 3), [6]);
});

test("weightsOf: shares of rows always add up to 1, and means add up to the number of micro-batches", () => {
  for (const sizes of everyCut) {
    const sum = (divide) => weightsOf(sizes, divide).reduce((a, b) => a + b, 0);
    assert.ok(Math.abs(sum(2) - 1) < 1e-12);
    assert.ok(Math.abs(sum(1) - 1) < 1e-12);
    assert.ok(Math.abs(sum(0) - sizes.length) < 1e-12);
  }
});

test("compare: names the mistake", () => {
  const full = [1, 2, -4];
  assert.deepStrictEqual(compare(full, [3, 6, -12], false, [2, 2, 2], 0), { kind: "factor", factor: 3 });
  assert.strictEqual(compare(full, full, true, [2, 2, 2], 1).kind, "same");
  assert.strictEqual(compare(full, [1.0000001, 2, -4], false, [1, 1, 4], 2).kind, "rounding");
  assert.strictEqual(compare(full, [1.0000001, 2, -4], false, [4, 2], 1).kind, "chance");
  assert.strictEqual(compare([1, 1, 1], [1, 1, 1], true, [4, 2], 1).kind, "chance");
  assert.strictEqual(compare([0, 0, 0], [0, 0, 0], true, [2, 2, 2], 0).kind, "zero");
  assert.strictEqual(compare(full, [1, 3, -4], false, [4, 2], 0).kind, "notScaled");
  assert.strictEqual(compare(full, [1, 3, -4], false, [4, 2], 1).kind, "meanOfMeans");
  assert.strictEqual(compare(full, [Infinity, 3, -4], false, [4, 2], 1).kind, "overflow");
});

test("mistakeOf: a right guess has no mistake, and typical guesses have their own", () => {
  assert.strictEqual(mistakeOf(3, [2, 2, 2], 0), null);
  assert.strictEqual(mistakeOf(1, [2, 2, 2], 1), null);
  assert.strictEqual(mistakeOf(1, [2, 2, 2], 0), "guessOne");
  assert.strictEqual(mistakeOf(2, [2, 2, 2], 0), "guessSize");
  assert.strictEqual(mistakeOf(3, [3, 3], 0), "guessSize");
  assert.strictEqual(mistakeOf(6, [2, 2, 2], 0), "guessRows");
  assert.strictEqual(mistakeOf(3, [2, 2, 2], 1), "guessParts");
});

test("largerSizes: 64 items in the same proportions", () => {
  for (const sizes of [...everyCut, ...PRESETS]) {
    const larger = largerSizes(sizes);
    assert.strictEqual(larger.length, sizes.length);
    assert.strictEqual(larger.reduce((a, b) => a + b, 0), 64);
    assert.ok(larger.every((size, k) => Math.abs(size - sizes[k] * 64 / 6) < 1));
  }
});
