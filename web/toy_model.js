// Computes how much each row of the toy counts, and explains a gradient that is wrong. Needs no browser.

export const ROWS = 6;
export const PRESETS = [[6], [3, 3], [2, 2, 2], [4, 2], [1, 1, 1, 1, 1, 1]];

// Returns for each of the five gaps between rows whether a cut is there.
export function gapsOf(sizes) {
  const gaps = Array(ROWS - 1).fill(false);
  let end = 0;
  for (const size of sizes.slice(0, -1)) gaps[(end += size) - 1] = true;
  return gaps;
}

export function sizesOf(gaps) {
  const sizes = [];
  let from = 0;
  for (let row = 0; row < ROWS; ++row) {
    if (row + 1 < ROWS && !gaps[row]) continue;
    sizes.push(row + 1 - from);
    from = row + 1;
  }
  return sizes;
}

// Moves the cut at gap `from` to gap `to`. A move onto another cut, or outside, changes nothing.
export function moveCut(sizes, from, to) {
  const gaps = gapsOf(sizes);
  if (to < 0 || to >= gaps.length || gaps[to] || !gaps[from]) return sizes;
  gaps[from] = false;
  gaps[to] = true;
  return sizesOf(gaps);
}

export function toggleCut(sizes, gap) {
  const gaps = gapsOf(sizes);
  gaps[gap] = !gaps[gap];
  return sizesOf(gaps);
}

// Returns [numerator, denominator] of the weight that each row of a micro-batch has in the final sum.
export function weightOf(size, parts, divide) {
  return [[1, size], [1, size * parts], [1, ROWS]][divide];
}

export const weightsOf = (sizes, divide) => sizes.flatMap((size) => {
  const [above, below] = weightOf(size, sizes.length, divide);
  return Array(size).fill(above / below);
});

// Explains the sum of the micro-batches' gradients. `full` and `sum` are lists of numbers, and `same` says whether their bits are
// equal. Returns {kind, factor}: kind is a key of the catalogue "verdict".
export function compare(full, sum, same, sizes, divide) {
  if (!sum.every(Number.isFinite) || !full.every(Number.isFinite)) return { kind: "overflow" };
  if (full.every((x) => x === 0)) return { kind: "zero" };
  const fair = weightsOf(sizes, divide).every((weight) => Math.abs(weight - 1 / ROWS) < 1e-12);
  if (same) return { kind: fair ? "same" : "chance" };
  const close = (factor) => full.every((x, i) => Math.abs(sum[i] - factor * x) <= 1e-5 * Math.abs(factor * x) + 1e-12);
  const n = sizes.length;
  if (close(1)) return { kind: fair ? "rounding" : "chance" };
  if (divide === 0 && close(n)) return { kind: "factor", factor: n };
  return { kind: divide === 0 ? "notScaled" : "meanOfMeans" };
}

// The factors that a learner can guess, and the mistake behind a wrong guess if the micro-losses are not scaled.
export const GUESSES = [1 / 3, 1 / 2, 1, 2, 3, 6];

export function mistakeOf(guess, sizes, divide) {
  const n = sizes.length;
  const right = divide === 0 ? n : 1;
  if (Math.abs(guess - right) < 1e-9) return null;
  if (divide === 0 && guess === 1) return "guessOne";
  if (divide === 0 && new Set(sizes).size === 1 && guess === sizes[0]) return "guessSize";
  if (divide === 0 && guess === ROWS) return "guessRows";
  if (divide !== 0 && guess === n) return "guessParts";
  if (divide === 1 && guess < 1) return "guessTwice";
  return guess > right ? "guessLess" : "guessMore";
}

// Returns how many of 64 items each micro-batch of a larger training has, for the same cut of its batch.
export function largerSizes(sizes, items = 64) {
  const ends = [];
  let rows = 0;
  for (const size of sizes) ends.push(Math.round((rows += size) * items / ROWS));
  return ends.map((end, i) => end - (ends[i - 1] ?? 0));
}
