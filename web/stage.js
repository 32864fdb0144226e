// Draws the toy: six rows, ribbons as wide as each row counts, and bars that add up to w.grad.
import { dragging, isFirst, make, set, setText, shape } from "./elements.js";
import { valueOf } from "./numbers.js";
import { text } from "./texts.js";
import { ROWS, gapsOf, weightOf, weightsOf } from "./toy_model.js";

const HUES = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#9a7a00", "#56b4e9"]; // Okabe and Ito, readable on light and dark
const SETTLING = 260, BREATHING = 400; // milliseconds

// The picture flows along one direction: to the right on a wide screen, and down on a phone. `across` is the other direction.
const WIDE = {
  width: 1240, height: 426, isWide: true, thick: 60,
  row: 22, rowStep: 66, rowSize: 38, shift: 5, cell: 44, cellStep: 92, cellSize: 88, label: 12,
  handle: 340, line: [12, 340], weight: 396, ribbon: 440, box: [560, 740], boxSize: 46, pile: [806, 820], bracket: 828,
  bars: 868, barStep: 128, barSize: 108, zero: 190, reach: 158, values: [384, 404], middle: 209,
};
const TALL = {
  width: 390, height: 692, isWide: false, thick: 60,
  row: 8, rowStep: 63, rowSize: 56, shift: 2, cell: 26, cellStep: 58, cellSize: 56, label: 16,
  handle: 226, line: [26, 226], weight: 272, ribbon: 288, box: [342, 392], boxSize: 60, pile: [444, 454], bracket: 460,
  bars: 516, barStep: 58, barSize: 34, zero: 195, reach: 150, values: [0, 0], middle: 195,
};

const ease = (from, to, u) => from === undefined ? to : from + (to - from) * u;

// Makes a stage. `hands` has the functions that change the state: isCut(gap), toggle(gap), move(from, to), guess(factor), end(), and
// cell(row, number), which makes a field.
export function makeStage(hands) {
  const svg = shape("svg", { class: "drawing", role: "group", "aria-label": text("toy.picture") });
  const layer = make("div", { class: "cells" });
  const element = make("div", { class: "stage" }, svg, layer);
  let G = WIDE;
  const at = (along, across) => G.isWide ? `${along} ${across}` : `${across} ${along}`;
  const box = (along, size, across, thick) => G.isWide ? { x: along, width: size, y: across, height: thick }
    : { x: across, width: thick, y: along, height: size };
  const point = (along, across) => G.isWide ? { x: along, y: across } : { x: across, y: along };
  const line = (along1, along2, across1, across2) => {
    const a = point(along1, across1), b = point(along2, across2);
    return { x1: a.x, y1: a.y, x2: b.x, y2: b.y };
  };
  const ribbon = (from, to, c1, c2, thick) => {
    const middle = (from + to) / 2;
    return `M${at(from, c1)}C${at(middle, c1)} ${at(middle, c2)} ${at(to, c2)}L${at(to, c2 + thick)}` +
      `C${at(middle, c2 + thick)} ${at(middle, c1 + thick)} ${at(from, c1 + thick)}Z`;
  };

  const six = [...Array(ROWS).keys()], three = [0, 1, 2];
  const titles = ["rowsLabel", "weightsLabel", "gradLabel"].map((name) => {
    const words = shape("text", { class: "label" }, text(`toy.${name}`));
    svg.append(words);
    return words;
  });
  const ribbons = six.map(() => svg.appendChild(shape("path", { class: "ribbon" })));
  const flows = six.map(() => svg.appendChild(shape("path", { class: "ribbon" })));
  const pulses = six.map(() => svg.appendChild(shape("path", { class: "pulse" })));
  const rows = six.map((i) => {
    const name = shape("text", { class: "label" }, `x${i}`);
    const weight = shape("text", { class: "weight" });
    svg.append(name, weight);
    return { name, weight };
  });
  const boxes = six.map(() => {
    const rect = shape("rect", { rx: 8 }), mean = shape("text", { class: "strong" }), loss = shape("text");
    const group = shape("g", { class: "micro", role: "group" }, rect, mean, loss);
    svg.append(group);
    return { group, rect, mean, loss };
  });
  const bracket = svg.appendChild(shape("path", { class: "bracket" }));
  const one = svg.appendChild(shape("text", { class: "strong" }, "1"));
  const together = svg.appendChild(shape("text", { class: "strong" }));
  const bars = three.map(() => {
    const zero = shape("line", { class: "zero" });
    const parts = six.map(() => shape("rect", { class: "part" }));
    const rivals = six.map(() => shape("rect", { class: "rival" }));
    const full = shape("line", { class: "full" });
    const guess = shape("line", { class: "guess" });
    const grip = shape("rect", { class: "grip", fill: "transparent" });
    const value = shape("text", { class: "strong" }), wanted = shape("text"), rival = shape("text", { class: "quiet" });
    svg.append(zero, ...parts, ...rivals, full, guess, grip, value, wanted, rival);
    return { zero, parts, rivals, full, guess, grip, value, wanted, rival };
  });
  const guessLabel = svg.appendChild(shape("text", { class: "label" }, text("toy.guessLine")));
  const handles = ROWS - 1;
  const gaps = [...Array(handles).keys()].map(() => {
    const dash = shape("line"), knob = shape("circle", { r: 9 }), mark = shape("text", { class: "mark" }, "✓");
    const hit = shape("rect", { fill: "transparent" });
    const group = shape("g", { class: "gap", role: "slider", tabindex: 0, "aria-valuemin": 1, "aria-valuemax": handles }, dash, knob, mark, hit);
    svg.append(group);
    return { group, dash, knob, hit, mark };
  });

  // ---- the numbers, as fields above the drawing ----
  const inputs = [...Array(ROWS * 3).keys()].map((i) => hands.cell(Math.floor(i / 3), i % 3));
  layer.append(...inputs);

  // ---- pulling a cut ----
  // Returns a function that finds where an event is across the picture. One drag uses one: asking the browser for the matrix takes
  // longer than drawing.
  const ruler = () => {
    const matrix = svg.getScreenCTM().inverse();
    return (event) => {
      const p = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix);
      return G.isWide ? p.y : p.x;
    };
  };
  const gapAt = (place) => Math.max(0, Math.min(handles - 1, Math.round((place - G.row - G.rowSize - (G.rowStep - G.rowSize) / 2) / G.rowStep)));
  const isOutside = (place) => place < G.row - G.rowStep || place > G.row + (ROWS + 1) * G.rowStep;
  gaps.forEach(({ group }, i) => {
    group.addEventListener("keydown", (event) => {
      const by = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
      if (event.key === " " || event.key === "Enter") hands.toggle(i);
      else if (by && (!hands.isCut(i) || hands.move(i, i + by))) gaps[i + by]?.group.focus();
      else if (!by) return;
      event.preventDefault();
    });
    group.addEventListener("pointerdown", (event) => {
      if (!isFirst(event)) return;
      event.preventDefault();
      group.focus();
      const wasCut = hands.isCut(i), [x, y] = [event.clientX, event.clientY], across = ruler();
      let place = i, moved = false, away = false;
      if (!wasCut) hands.toggle(i, "drag");
      dragging(svg, event, (next) => {
        moved ||= Math.hypot(next.clientX - x, next.clientY - y) > 4;
        const spot = across(next);
        if (isOutside(spot) !== away) { // pushing a cut away removes it
          away = !away;
          hands.toggle(place, "drag");
        }
        const to = gapAt(spot);
        if (!away && to !== place && hands.move(place, to, "drag")) place = to;
      }, () => {
        if (wasCut && !moved) hands.toggle(place);
        hands.end();
        gaps[place].group.focus();
      });
    });
  });

  // ---- drawing the guess ----
  let latest = null;
  const valueAt = (place) => (G.isWide ? G.zero - place : place - G.zero) / G.reach * latest.top;
  bars.forEach(({ grip }, j) => grip.addEventListener("pointerdown", (event) => {
    if (!isFirst(event) || !latest || latest.model.at > 0 || latest.full[j] === 0) return;
    event.preventDefault();
    const across = ruler(), take = (next) => hands.guess(valueAt(across(next)) / latest.full[j], "guess");
    take(event);
    dragging(svg, event, take, hands.end);
  }));

  // ---- drawing ----
  let shown = null, frame = 0, scale = 1;

  // Lays the picture out for the present size of the element.
  function fit() {
    const wide = element.clientWidth > 900; // else the picture is on a phone, or next to a card
    G = wide ? WIDE : TALL;
    set(element, { class: wide ? "stage wide" : "stage tall" });
    set(svg, { viewBox: `0 0 ${G.width} ${G.height}`, preserveAspectRatio: "xMidYMin" });
    const unit = Math.min(element.clientWidth / G.width, (element.clientHeight || Infinity) / G.height);
    layer.style.setProperty("--unit", `${unit}px`);
    layer.style.left = `${(element.clientWidth - unit * G.width) / 2}px`;
    const cell = box(0, G.cellSize, 0, G.rowSize);
    layer.style.setProperty("--width", cell.width);
    layer.style.setProperty("--height", cell.height);
    scale = unit;
    if (shown) placeCells(shown.place);
    titles.forEach((title, i) => set(title, G.isWide ? { x: [G.label, G.ribbon, G.bars][i], y: 14 } : { x: 4, y: [12, G.ribbon - 2, G.bars - 14][i] }));
  }

  function placeCells(places) {
    places.forEach((place, i) => three.forEach((j) => {
      const spot = point(G.cell + j * G.cellStep, place);
      inputs[3 * i + j].style.transform = `translate(${spot.x * scale}px, ${spot.y * scale}px)`;
    }));
  }

  // Paints a moment between the picture that is shown and the goal.
  function paint(goal, from, u) {
    const { model, full, sizes } = goal;
    const now = {
      top: ease(from.top, goal.top, u),
      place: goal.place.map((v, i) => ease(from.place[i], v, u)),
      weight: goal.weight.map((v, i) => ease(from.weight[i], v, u)),
      middle: goal.middle.map((v, i) => ease(from.middle[i], v, u)),
      sums: goal.sums.map((sum, k) => sum.map((v, j) => ease(from.sums[k]?.[j], v, u))),
    };
    shown = now;
    const hidden = model.at === 0;
    const heavy = now.weight.reduce((a, b) => a + b, 0);
    now.place.forEach((place, i) => {
      const middle = place + G.rowSize / 2;
      set(rows[i].name, G.isWide ? { x: G.label, y: middle + 5 } : { x: middle, y: G.cell - 4, "text-anchor": "middle" });
      set(rows[i].weight, { ...point(G.weight, middle), "text-anchor": "middle", ...(G.isWide ? { y: middle + 6 } : {}) });
    });
    placeCells(now.place);
    gaps.forEach(({ dash, knob, hit, mark }, i) => {
      const middle = (now.place[i] + G.rowSize + now.place[i + 1]) / 2;
      set(dash, line(...G.line, middle, middle));
      const end = point(G.handle, middle);
      set(knob, { cx: end.x, cy: end.y });
      set(hit, G.isWide ? { x: G.line[0], width: G.line[1] - G.line[0] + 22, y: middle - 13, height: 26 }
        : { x: middle - 28, width: 56, y: G.handle - 28, height: 56 });
      set(mark, { x: end.x, y: end.y + 4, "text-anchor": "middle" });
    });
    let row = 0, pile = G.middle - heavy * G.thick / 2;
    boxes.forEach((micro, k) => {
      const live = k < sizes.length;
      for (const shape of [micro.group, flows[k], pulses[k]]) set(shape, { visibility: live ? "visible" : "hidden" });
      if (!live) return;
      const off = k >= model.at ? " off" : "", middle = now.middle[k], hue = HUES[k];
      set(micro.group, { class: `micro${off}` });
      const wide = G.isWide ? G.boxSize : sizes[k] * G.rowStep - 7;
      set(micro.rect, { ...box(G.box[0], G.box[1] - G.box[0], middle - wide / 2, wide), stroke: hue });
      const center = point((G.box[0] + G.box[1]) / 2, middle);
      set(micro.mean, { x: center.x, y: center.y - 3, "text-anchor": "middle" });
      set(micro.loss, { x: center.x, y: center.y + 15, "text-anchor": "middle" });
      const total = now.weight.slice(row, row + sizes[k]).reduce((a, b) => a + b, 0) * G.thick;
      let edge = middle - total / 2;
      for (let r = 0; r < sizes[k]; ++r, ++row) {
        const thick = now.weight[row] * G.thick;
        set(ribbons[row], {
          d: ribbon(G.ribbon, G.box[0], now.place[row] + G.rowSize / 2 - thick / 2, edge, thick),
          fill: hue, class: `ribbon${off}${hidden ? " unknown" : ""}`,
        });
        edge += thick;
      }
      set(flows[k], { d: ribbon(G.box[1], G.pile[1], middle - total / 2, pile, total), fill: hue, class: `ribbon${off}${hidden ? " unknown" : ""}` });
      set(pulses[k], {
        d: `M${at(G.ribbon, middle)}L${at(G.box[0], middle)}M${at(G.box[1], middle)}L${at(G.pile[1], pile + total / 2)}`,
        class: k + 1 === model.at && model.playing ? "pulse now" : "pulse", stroke: hue,
      });
      pile += total;
    });
    const half = G.thick / 2, [top, bottom] = [G.middle - half, G.middle + half];
    set(bracket, { d: `M${at(G.bracket - 6, top)}L${at(G.bracket, top)}L${at(G.bracket, bottom)}L${at(G.bracket - 6, bottom)}` });
    set(one, { ...point(G.bracket + (G.isWide ? 6 : 14), G.middle), "text-anchor": G.isWide ? "start" : "middle", ...(G.isWide ? { y: G.middle + 6 } : {}) });
    set(together, G.isWide ? { x: G.bracket, y: 404, "text-anchor": "end" } : { x: G.width - 6, y: G.bracket + 18, "text-anchor": "end" });
    const fits = Math.abs(heavy - 1) < 0.004;
    setText(together, model.at < sizes.length ? "" : text(fits ? "toy.togetherRight" : "toy.togetherWrong", { sum: Number(heavy.toFixed(2)) }));
    set(together, { class: fits ? "strong right" : "strong wrong" });

    const position = (v) => { // infinite numbers, and a guess that is too large, end at the frame
      const length = Math.max(-1, Math.min(1, Number.isNaN(v) ? 0 : v / now.top)) * G.reach;
      return G.isWide ? G.zero - length : G.zero + length;
    };
    bars.forEach((bar, j) => {
      const begin = G.bars + j * G.barStep, room = model.rival ? G.barSize / 2 : G.barSize, width = room / sizes.length;
      set(bar.zero, line(begin - 4, begin + G.barSize + 4, position(0), position(0)));
      bar.parts.forEach((part, k) => {
        const visible = k < Math.min(model.at, sizes.length);
        set(part, { visibility: visible ? "visible" : "hidden" });
        if (!visible) return;
        const before = position(k ? now.sums[k - 1][j] : 0);
        const grown = k + 1 === model.at && model.playing ? model.growth : 1;
        const after = before + (position(now.sums[k][j]) - before) * grown;
        set(part, {
          ...box(begin + k * width + 1, Math.max(1, width - 2), Math.min(before, after), Math.max(1.5, Math.abs(after - before))),
          fill: HUES[k],
        });
      });
      bar.rivals.forEach((rival, k) => {
        const visible = model.rival && k < Math.min(model.at, sizes.length);
        set(rival, { visibility: visible ? "visible" : "hidden" });
        if (!visible) return;
        const before = position(k ? goal.rivalSums[k - 1][j] : 0), after = position(goal.rivalSums[k][j]);
        set(rival, {
          ...box(begin + room + k * width + 2, Math.max(1, width - 3), Math.min(before, after), Math.max(1.5, Math.abs(after - before))),
          stroke: HUES[k],
        });
      });
      set(bar.full, line(begin - 6, begin + G.barSize + 6, position(full[j]), position(full[j])));
      const guessed = model.guess === null ? null : position(model.guess * full[j]);
      set(bar.guess, { visibility: guessed === null ? "hidden" : "visible" });
      if (guessed !== null) set(bar.guess, line(begin - 6, begin + G.barSize + 6, guessed, guessed));
      if (j === 0) set(guessLabel, { ...point(begin - 4, (guessed ?? 0) - 6), visibility: guessed === null || !hidden ? "hidden" : "visible" });
      set(bar.grip, box(begin - 8, G.barSize + 16, G.zero - G.reach - 8, 2 * G.reach + 16));
      const middle = begin + G.barSize / 2;
      const words = G.isWide ? [{ x: middle, y: G.values[0], "text-anchor": "middle" }, { x: middle, y: G.values[1], "text-anchor": "middle" }]
        : [{ x: 4, y: begin + 22, "text-anchor": "start" }, { x: G.width - 4, y: begin + 22, "text-anchor": "end" }];
      set(bar.value, words[0]);
      set(bar.wanted, words[1]);
      set(bar.rival, { ...words[1], y: words[1].y + 18, visibility: model.rival ? "visible" : "hidden" });
    });
  }

  // Shows a model {x, sizes, divide, at, guess, playing, growth, rival} with the engine's answer. A bar of the value `top` is as long
  // as the picture allows.
  function draw(model, answer, top) {
    const { sizes, divide } = model;
    const full = answer.full.map(valueOf), sums = answer.parts.map((part) => part.grad.map(valueOf));
    const goal = {
      model, full, sizes, sums, rivalSums: model.rival?.parts.map((part) => part.grad.map(valueOf)), place: [], middle: [], weight: weightsOf(sizes, divide),
      top,
    };
    let row = 0;
    sizes.forEach((size, k) => {
      const first = G.row + row * G.rowStep + k * G.shift;
      for (let r = 0; r < size; ++r, ++row) goal.place.push(G.row + row * G.rowStep + k * G.shift);
      goal.middle.push((first + goal.place.at(-1) + G.rowSize) / 2);
    });
    const isCut = gapsOf(sizes), hidden = model.at === 0, isDone = model.at === sizes.length;
    gaps.forEach(({ group }, i) => set(group, {
      class: isCut[i] ? "gap cut" : "gap",
      "aria-label": text("toy.gap", { row: i }), "aria-valuenow": i + 1, "aria-orientation": G.isWide ? "vertical" : "horizontal",
      "aria-valuetext": text(isCut[i] ? "toy.cutHere" : "toy.noCut", { sizes: sizes.join(" + ") }),
    }));
    set(element, { class: `stage ${G.isWide ? "wide" : "tall"}${hidden && sizes.length > 1 ? " guessing" : ""}` });
    let first = 0;
    sizes.forEach((size, k) => {
      const [above, below] = weightOf(size, sizes.length, divide), right = below === ROWS;
      for (let r = 0; r < size; ++r) {
        setText(rows[first + r].weight, hidden ? "?" : `${above}/${below}${right ? " ✓" : ""}`);
        set(rows[first + r].weight, { class: hidden ? "weight quiet" : right ? "weight right" : "weight wrong" });
      }
      const factor = text("toy.factors", { parts: sizes.length, n: size })[divide], mean = text("toy.meanAlone", { n: size });
      setText(boxes[k].mean, !factor ? mean : G.isWide || size > 2 ? text("toy.mean", { n: size }) + factor : factor);
      setText(boxes[k].loss, k < model.at ? answer.parts[k].loss.text : "");
      set(boxes[k].group, { "aria-label": text("toy.microBatch", { number: k + 1, rows: size, first, last: first + size - 1 }) });
      first += size;
    });
    three.forEach((j) => {
      const last = answer.parts[Math.min(model.at, sizes.length) - 1];
      setText(bars[j].value, last ? last.grad[j].text : "-");
      set(bars[j].value, { class: model.at < sizes.length ? "strong" : answer.same ? "strong right" : "strong wrong" });
      set(bars[j].full, { class: isDone && answer.same ? "full right" : "full" });
      setText(bars[j].wanted, text("toy.wanted", { value: answer.full[j].text }));
      const rival = model.rival?.parts[Math.min(model.at, sizes.length) - 1];
      setText(bars[j].rival, rival ? text("toy.rival", { value: rival.grad[j].text }) : "");
    });
    setText(titles[2], text(model.rival ? "toy.gradsLabel" : "toy.gradLabel", model.names));
    latest = { model, full, top: goal.top };
    const from = shown && shown.turned === G.isWide ? shown : goal;
    cancelAnimationFrame(frame);
    const length = from.goal === String(sizes) ? BREATHING : SETTLING;
    const finish = () => Object.assign(shown, { turned: G.isWide, goal: String(sizes) });
    if (from === goal || matchMedia("(prefers-reduced-motion: reduce)").matches) {
      paint(goal, goal, 1);
      finish();
      return;
    }
    const begun = performance.now();
    const tick = (time) => {
      const u = Math.min(1, Math.max(0, (time - begun) / length));
      paint(goal, from, 1 - (1 - u) ** 3);
      finish();
      if (u < 1) frame = requestAnimationFrame(tick);
    };
    frame = requestAnimationFrame(tick);
  }

  return { element, fit, draw };
}
