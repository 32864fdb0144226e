// Computes throws of micro-batches, their spread, and the law that the dots of a learner follow. Needs no browser.

export const ITEMS = 512;
const MOST_DRAWS = 1000; // the engine's limit for one size
const MOST_THROWS = 500;
const ENOUGH = 20; // throws that leave a dot

// A setting is {size, count}: a throw draws `count` micro-batches of `size` items each.
export const mostThrows = (count) => Math.min(MOST_THROWS, Math.floor(MOST_DRAWS / count));
export const throwsForDot = (count) => Math.min(ENOUGH, mostThrows(count));

// Returns how many draws to ask for if `needed` are shown. The engine computes all draws of each call, so the number doubles.
export function drawsToAsk(needed) {
  let draws = 64;
  while (draws < needed) draws *= 2;
  return Math.min(draws, MOST_DRAWS);
}

// Returns the micro-batches of a throw: their gradients, and the corners of the path that lays gradient / count tip to tail from zero.
export function throwAt(points, count, index) {
  const micro = points.slice(index * count, (index + 1) * count);
  const path = [[0, 0]];
  for (const [x, y] of micro) path.push([path.at(-1)[0] + x / count, path.at(-1)[1] + y / count]);
  return { micro, path, mean: path.at(-1) };
}

export const meansOf = (points, count, thrown) => [...Array(thrown).keys()].map((index) => throwAt(points, count, index).mean);

export const distance = ([x, y], [a, b]) => Math.hypot(x - a, y - b);

// Returns the root mean square distance of points from the full gradient, or null without points.
export function spreadOf(means, full) {
  if (!means.length) return null;
  return Math.sqrt(means.reduce((sum, mean) => sum + distance(mean, full) ** 2, 0) / means.length);
}

export const spreadText = (spread) => spread.toPrecision(3);

// ---- the throws of each setting that the learner tried: a list of [size, count, thrown, spread] ----

// Returns the list with one more entry. Of two entries of one setting, the one with more throws stays, since it contains the other.
export function withEntry(found, entry) {
  const [size, count, thrown] = entry;
  if (thrown === 0) return found;
  const at = found.findIndex((one) => one[0] === size && one[1] === count);
  if (at < 0) return [...found, entry];
  return found[at][2] >= thrown ? found : found.map((one, i) => i === at ? entry : one);
}

export const thrownBefore = (found, size, count) => found.find((one) => one[0] === size && one[1] === count)?.[2] ?? 0;

// Returns the dots {size, count, items, spread} of the settings that were thrown often enough.
export const dotsOf = (found) => found.filter(([, count, thrown]) => thrown >= throwsForDot(count))
  .map(([size, count, , spread]) => ({ size, count, items: size * count, spread }));

// Returns the spread at one item of the line with slope -1/2 that is nearest to the dots, or null without dots.
export function spreadAtOne(dots) {
  if (!dots.length) return null;
  return Math.exp(dots.reduce((sum, { items, spread }) => sum + Math.log(spread) + Math.log(items) / 2, 0) / dots.length);
}

// Returns the slope of the line that fits the dots best, both axes logarithmic. Returns null for less than three places.
export function slopeOf(dots) {
  if (new Set(dots.map(({ items }) => items)).size < 3) return null;
  const x = dots.map(({ items }) => Math.log(items)), y = dots.map(({ spread }) => Math.log(spread));
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [middleX, middleY] = [mean(x), mean(y)];
  return x.reduce((sum, value, i) => sum + (value - middleX) * (y[i] - middleY), 0) /
    x.reduce((sum, value) => sum + (value - middleX) ** 2, 0);
}

const FOR_LAW = 4;
export const isLawFound = (dots) => dots.length >= FOR_LAW;

// Returns two dots with the same number of items, {many, one}: accumulated micro-batches and a single batch. One of them is the
// dot of the setting. Returns null if one of them is missing.
export function pairOf(dots, size, count) {
  const items = size * count;
  const same = dots.filter((dot) => dot.items === items);
  const many = count > 1 ? same.find((dot) => dot.count === count) : same.find((dot) => dot.count > 1);
  const one = same.find((dot) => dot.count === 1);
  return many && one ? { many, one, apart: Math.abs(Math.log(many.spread / one.spread)) } : null;
}

// Returns the key of the sentence that leads the learner on, and its values.
export function nextStep({ size, count, thrown }, dots) {
  const needed = throwsForDot(count);
  if (isLawFound(dots)) return { key: slopeOf(dots) === null ? "places" : "law" };
  if (thrown === 0 && !dots.length) return { key: "begin" };
  if (thrown < needed) return { key: thrown ? "more" : "hold", values: { needed } };
  const singles = dots.filter((dot) => dot.count === 1);
  if (dots.length === 1 && count === 1) return { key: "other", values: { size: size === 64 ? 8 : 64 } };
  const alone = dots.find((dot) => dot.count > 1 && dot.items <= ITEMS && !singles.some((one) => one.items === dot.items));
  if (alone) return { key: "compare", values: { size: alone.items } };
  const large = singles.filter((dot) => dot.size % 4 === 0).sort((a, b) => Math.abs(a.size - 64) - Math.abs(b.size - 64))[0];
  if (large && singles.length === dots.length) return { key: "accumulate", values: { size: large.size / 4, items: large.size } };
  return { key: "four", values: { left: FOR_LAW - dots.length } };
}

// ---- places in the pictures ----

// Returns where a point lies in a picture of this width and height, with `middle` in its middle and `scale` pixels per unit. A point
// outside is put onto the edge, in its direction, and `angle` is this direction in degrees.
export function placeIn([x, y], middle, scale, [width, height], margin = 9) {
  const right = (x - middle[0]) * scale, down = (middle[1] - y) * scale;
  const outside = Math.abs(right) > width / 2 || Math.abs(down) > height / 2;
  const shrink = outside ? Math.min((width / 2 - margin) / Math.abs(right), (height / 2 - margin) / Math.abs(down)) : 1;
  return {
    x: width / 2 + right * shrink, y: height / 2 + down * shrink, outside,
    angle: outside ? Math.atan2(down, right) * 180 / Math.PI : 0,
  };
}

// Returns the multiples of `step` within `reach` of `middle`.
export function ticksOf(middle, reach, step) {
  const ticks = [];
  for (let i = Math.ceil((middle - reach) / step); i * step < middle + reach; ++i) ticks.push(Number((i * step).toFixed(6)));
  return ticks;
}

// The powers of two of a slider: its position is the exponent.
export const exponentOf = (value) => Math.round(Math.log2(value));
