// Tests web/state.js and web/store.js: links, codes, and undo.
import assert from "node:assert";
import test from "node:test";

import { START, codeOf, linkOf, patched, readCode, readLink } from "../../web/state.js";

const state = (patch) => patched(START, patch);

test("linkOf: a link brings back the state of its part", () => {
  for (const patch of [{ toy: { cuts: [4, 2], divide: 2, at: 1 } }, { toy: { x: Array(18).fill(0.5), w: [1, -2, 0.25] } },
    { part: "lessons", lessons: { lesson: 6, step: 3, present: 1 } }, { part: "chain", chain: { layers: 8, cuts: [0, 2, 5] } },
    { part: "noise", noise: { size: 64, count: 4, seed: 9 } }]) {
    const wanted = state(patch), { state: read, unread } = readLink(linkOf(wanted));
    assert.deepStrictEqual(unread, []);
    assert.deepStrictEqual(read[wanted.part], wanted[wanted.part]);
  }
});

test("readLink: keeps what can be read, and names the rest", () => {
  const { state: read, unread } = readLink("#part=toy&cuts=4,3&divide=2&at=1&x=1,2&moon=1");
  assert.deepStrictEqual(unread.sort(), ["cuts", "moon", "x"]);
  assert.strictEqual(read.toy.divide, 2);
  assert.deepStrictEqual(read.toy.cuts, START.toy.cuts);
  assert.deepStrictEqual(readLink("#part=moon").unread, ["part"]);
});

test("readLink: numbers in other notations are rejected", () => {
  for (const text of ["0x1", "1e2", "", "01", "-1"]) assert.deepStrictEqual(readLink(`#part=noise&size=${text}`).unread, ["size"], text);
});

test("codeOf: a code brings back the state", () => {
  for (const patch of [{ toy: { cuts: [2, 2, 2], divide: 1 } }, { toy: { cuts: [1, 1, 1, 1, 1, 1], divide: 0 } },
    { part: "lessons", lessons: { lesson: 6, step: 3 } }, { part: "chain", chain: { layers: 9, cuts: [0, 3, 6] } },
    { part: "noise", noise: { size: 16, count: 4 } }]) {
    const wanted = state(patch), code = codeOf(wanted);
    assert.strictEqual(codeOf(patched(START, readCode(code))), code);
  }
  assert.strictEqual(codeOf(state({ toy: { cuts: [2, 2, 2], divide: 1 } })), "S 222 n");
  assert.strictEqual(codeOf(state({ toy: { w: [1, 2, 3] } })), "");
});

test("readCode: another text is not a code", () => {
  for (const text of ["", "S", "S 22 n", "S 222 q", "X 1 2", "S 222 n 3", "N 0 1", "C 4 0,9"]) assert.strictEqual(readCode(text), null, text);
});

test("store: undo gives back each of ten changes, and a gesture is one change", async () => {
  globalThis.history = { replaceState() {} };
  const { canUndo, change, endGesture, now, onchange, redo, undo } = await import("../../web/store.js");
  let rendered = 0;
  onchange(() => ++rendered);
  const states = [now()];
  for (let i = 1; i <= 10; ++i) {
    change({ noise: { seed: i } });
    states.push(now());
  }
  while (states.length > 1) {
    assert.strictEqual(now(), states.pop());
    undo();
  }
  assert.ok(!canUndo());
  redo();
  assert.strictEqual(now().noise.seed, 1);
  for (let i = 20; i < 30; ++i) change({ noise: { seed: i } }, "drag");
  endGesture();
  change({ noise: { seed: 40 } }, "drag");
  undo();
  assert.strictEqual(now().noise.seed, 29);
  undo();
  assert.strictEqual(now().noise.seed, 1);
  assert.ok(rendered > 20);
});
