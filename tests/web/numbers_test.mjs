// Tests web/numbers.js: numbers as people write them, and how numbers are shown.
import assert from "node:assert";
import test from "node:test";

import { bitsOf, fits32, parseNumber, readable, shortest, valueOf } from "../../web/numbers.js";

test("parseNumber: reads fractions, commas, other minus signs, percents and powers", () => {
  for (const [words, value] of [["1/3", 1 / 3], ["0,333", 0.333], ["−3", -3], [" 2 ", 2], ["3,0", 3], ["25 %", 0.25], ["0.9^4", 0.9 ** 4],
    ["-1/4", -0.25], [".5", 0.5], ["1e-3", 0.001], ["14 949", 14949]])
    assert.strictEqual(parseNumber(words), value, words);
});

test("parseNumber: rejects what is not a number", () => {
  for (const words of ["", "abc", "three", "1/", "/3", "1..2", "0x1", "1,2,3", "NaN", "Infinity", "--1", "1/2/3"])
    assert.ok(Number.isNaN(parseNumber(words)), words);
});

test("fits32: a number that overflows 32 bits does not fit", () => {
  assert.ok(fits32(3e38));
  assert.ok(!fits32(1e39));
  assert.ok(!fits32(NaN));
});

test("readable: a recurring fraction is shown as a fraction", () => {
  assert.strictEqual(readable("0.3333333333"), "1/3 (0.3333)");
  assert.strictEqual(readable("0.2727272727"), "3/11 (0.2727)");
  assert.strictEqual(readable("0.9991988634"), "0.999199");
  assert.strictEqual(readable("6592"), "6592");
});

test("shortest: reading the text gives the same 32-bit number", () => {
  for (let i = 0; i < 1000; ++i) {
    const value = Math.fround((i - 500) * 1.2345678 ** (i % 60));
    assert.strictEqual(Math.fround(Number(shortest(value))), value);
  }
});

test("valueOf: returns the number that bitsOf wrote", () => {
  for (const value of [0, 1, -1060.7999, 1e-38].map(Math.fround)) assert.strictEqual(valueOf({ bits: bitsOf(value) }), value);
});
