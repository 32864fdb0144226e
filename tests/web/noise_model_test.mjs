// Tests web/noise_model.js: throws, spread, dots, the law, and places in the pictures.
import assert from "node:assert";
import test from "node:test";

import {
  dotsOf, drawsToAsk, exponentOf, isLawFound, meansOf, mostThrows, nextStep, pairOf, placeIn, slopeOf, spreadAtOne, spreadOf, spreadText,
  thrownBefore, throwAt, throwsForDot, ticksOf, withEntry,
} from "../../web/noise_model.js";
import { START, linkOf, patched, readCode, readLink } from "../../web/state.js";

const POINTS = [[1, 2], [3, -2], [5, 0], [-1, 4], [0, 0]];
const near = (a, b) => assert.ok(Math.abs(a - b) < 1e-9, `${a} is not ${b}`);
const setting = (size, count, thrown = 0) => ({ size, count, thrown });

// Dots that lie exactly on the law with a spread of 4 at one item.
const lawful = (...settings) => settings.map(([size, count]) =>
  ({ size, count, items: size * count, spread: 4 / Math.sqrt(size * count) }));

test("throwAt: lays the divided gradients tip to tail, and ends in their mean", () => {
  const { micro, path, mean } = throwAt(POINTS, 2, 1);
  assert.deepStrictEqual(micro, [[5, 0], [-1, 4]]);
  assert.deepStrictEqual(path, [[0, 0], [2.5, 0], [2, 2]]);
  assert.deepStrictEqual(mean, [2, 2]);
  assert.deepStrictEqual(throwAt(POINTS, 1, 0).path, [[0, 0], [1, 2]]);
});

test("meansOf and spreadOf: the root mean square distance of the means", () => {
  assert.deepStrictEqual(meansOf(POINTS, 2, 2), [[2, 0], [2, 2]]);
  near(spreadOf([[2, 0], [2, 2]], [2, 1]), 1);
  near(spreadOf([[3, 4], [0, 0]], [0, 0]), Math.sqrt(12.5));
  assert.strictEqual(spreadOf([], [0, 0]), null);
});

test("spreadText: three digits that count", () => {
  assert.deepStrictEqual([0.2181, 0.7, 4.7712, 0.05671].map(spreadText), ["0.218", "0.700", "4.77", "0.0567"]);
});

test("mostThrows and drawsToAsk: never more than the engine's 1000 draws, and few calls", () => {
  for (let count = 1; count <= 64; ++count) {
    assert.ok(mostThrows(count) * count <= 1000 && mostThrows(count) <= 500);
    assert.ok(throwsForDot(count) <= mostThrows(count), "each count can leave a dot");
    for (let thrown = 1; thrown <= mostThrows(count); ++thrown) {
      const draws = drawsToAsk(thrown * count);
      assert.ok(draws >= thrown * count && draws <= 1000);
    }
  }
  assert.strictEqual(new Set([...Array(1000).keys()].map((i) => drawsToAsk(i + 1))).size, 5);
  assert.strictEqual(throwsForDot(1), 20);
});

test("withEntry: keeps one entry per setting, the one with more throws", () => {
  let found = withEntry([], [8, 1, 0, null]);
  assert.deepStrictEqual(found, []);
  found = withEntry(withEntry(found, [8, 1, 20, 1.7]), [16, 4, 5, 0.6]);
  found = withEntry(found, [8, 1, 30, 1.6]);
  assert.deepStrictEqual(withEntry(found, [8, 1, 1, 9]), [[8, 1, 30, 1.6], [16, 4, 5, 0.6]]);
  assert.strictEqual(thrownBefore(found, 16, 4), 5);
  assert.strictEqual(thrownBefore(found, 4, 16), 0);
});

test("dotsOf: a setting leaves a dot after 20 throws", () => {
  assert.deepStrictEqual(dotsOf([[8, 1, 19, 1.7], [16, 4, 20, 0.6]]), [{ size: 16, count: 4, items: 64, spread: 0.6 }]);
});

test("spreadAtOne and slopeOf: find the law of lawful dots", () => {
  const dots = lawful([8, 1], [64, 1], [16, 4], [512, 2]);
  near(spreadAtOne(dots), 4);
  near(slopeOf(dots), -0.5);
  assert.strictEqual(slopeOf(lawful([8, 1], [64, 1], [16, 4])), null, "two places give no measured slope");
  assert.strictEqual(spreadAtOne([]), null);
});

test("pairOf: finds 4 x 16 for 64, and 64 for 4 x 16", () => {
  const dots = lawful([8, 1], [64, 1], [16, 4], [4, 16]);
  assert.deepStrictEqual([pairOf(dots, 64, 1).many.count, pairOf(dots, 4, 16).many.count, pairOf(dots, 4, 16).one.size], [4, 16, 64]);
  near(pairOf(dots, 16, 4).apart, 0);
  assert.strictEqual(pairOf(dots, 8, 1), null);
  assert.strictEqual(pairOf(dots, 32, 2), null, "that setting has no dot");
});

test("nextStep: leads from the first throw to accumulation and to the law", () => {
  const key = (...given) => nextStep(...given).key;
  assert.strictEqual(key(setting(8, 1), []), "begin");
  assert.strictEqual(key(setting(8, 1, 3), []), "more");
  assert.deepStrictEqual(nextStep(setting(8, 1, 20), lawful([8, 1])), { key: "other", values: { size: 64 } });
  assert.deepStrictEqual(nextStep(setting(64, 1, 20), lawful([64, 1])), { key: "other", values: { size: 8 } });
  assert.strictEqual(key(setting(64, 1), lawful([8, 1])), "hold");
  assert.deepStrictEqual(nextStep(setting(64, 1, 20), lawful([8, 1], [64, 1])), { key: "accumulate", values: { size: 16, items: 64 } });
  assert.deepStrictEqual(nextStep(setting(16, 4, 20), lawful([8, 1], [16, 4])), { key: "compare", values: { size: 64 } });
  assert.deepStrictEqual(nextStep(setting(16, 4, 20), lawful([8, 1], [64, 1], [16, 4])), { key: "four", values: { left: 1 } });
  assert.strictEqual(key(setting(16, 4, 20), lawful([8, 1], [64, 1], [16, 4], [512, 1])), "law");
  assert.strictEqual(key(setting(16, 4, 20), lawful([64, 1], [32, 2], [16, 4], [8, 8])), "places");
  assert.ok(isLawFound(lawful([8, 1], [64, 1], [16, 4], [512, 1])) && !isLawFound(lawful([8, 1], [64, 1], [16, 4])));
});

test("placeIn: equal scales, upwards, and outside points on the edge in their direction", () => {
  const size = [580, 480];
  assert.deepStrictEqual(placeIn([3, 2], [2, 1], 48, size), { x: 338, y: 192, outside: false, angle: 0 });
  const right = placeIn([102, 1], [2, 1], 48, size);
  assert.deepStrictEqual([right.x, right.y, right.outside, right.angle], [571, 240, true, 0]);
  const up = placeIn([2, 101], [2, 1], 48, size);
  assert.deepStrictEqual([up.x, up.y, up.outside, up.angle], [290, 9, true, -90]);
  for (let angle = 0; angle < 360; angle += 7) {
    const { x, y, outside } = placeIn([90 * Math.cos(angle), 90 * Math.sin(angle)], [0, 0], 48, size);
    assert.ok(outside && x >= 9 - 1e-9 && x <= 571 + 1e-9 && y >= 9 - 1e-9 && y <= 471 + 1e-9);
  }
});

test("ticksOf and exponentOf", () => {
  assert.deepStrictEqual(ticksOf(-2.1, 5, 2), [-6, -4, -2, 0, 2]);
  assert.deepStrictEqual(ticksOf(1.08, 0.25, 0.1), [0.9, 1, 1.1, 1.2, 1.3]);
  assert.deepStrictEqual([1, 2, 3, 48, 64, 512].map(exponentOf), [0, 1, 2, 6, 6, 9]);
});

test("links and codes of the noise: the dots stay in the history, and throws stay within the limit", () => {
  const noise = { size: 16, count: 4, seed: 3, thrown: 200, law: 1, near: 1, found: [[8, 1, 20, 1.7]] };
  const link = linkOf(patched(START, { part: "noise", noise }));
  assert.deepStrictEqual(readLink(link).state.noise, { ...noise, found: [] });
  assert.strictEqual(readLink("#part=noise&count=64&thrown=500").state.noise.thrown, mostThrows(64));
  assert.deepStrictEqual(readCode("N 16 4"), { part: "noise", noise: { size: 16, count: 4, thrown: 0 } });
});
