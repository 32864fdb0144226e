// Shows the toy, the small example of the course. The toy has six rows, which are divided into micro-batches.

const CUTS = [["6", [6]], ["3 + 3", [3, 3]], ["2 + 2 + 2", [2, 2, 2]], ["4 + 2", [4, 2]], ["six of 1", [1, 1, 1, 1, 1, 1]]];
const DIVIDE = ["as it is", "divided by N", "times its rows / 6"];
let playing = null;

function cutBy(cuts) {
  state.toy.cuts = cuts;
  state.toy.at = cuts.length;
  show();
}

function showToy() {
  const toy = state.toy;
  const answer = ask("toy", Float32Array.from(toy.x), 18, Float32Array.from(toy.w), Int32Array.from(toy.cuts), toy.cuts.length, toy.divide);
  choices($("presets"), CUTS.map(([name]) => name), CUTS.findIndex(([, cuts]) => String(cuts) === String(toy.cuts)), (i) => cutBy(CUTS[i][1]));
  choices($("divide"), DIVIDE, toy.divide, (i) => { toy.divide = i; show(); });
  $("weights").replaceChildren(...toy.w.map((_, i) => numberField(toy.w, i, `w, number ${i + 1}`)));
  $("back").disabled = $("first").disabled = toy.at === 0;
  $("next").disabled = toy.at === toy.cuts.length;

  const lanes = answer.parts.map((part, k) => {
    const rows = [];
    for (let row = part.from; row < part.from + part.rows; ++row) {
      rows.push(make("div", { class: "row" }, make("span", {}, `x${row}`), ...[0, 1, 2].map((i) => numberField(toy.x, 3 * row + i, `row ${row}, number ${i + 1}`))));
      if (row < 5) rows.push(cutButton(row, row + 1 === part.from + part.rows));
    }
    const factor = [``, ` / ${toy.cuts.length}`, ` × ${part.rows}/6`][toy.divide];
    return make("div", { class: `lane${k >= toy.at ? " waiting" : ""}${k + 1 === toy.at ? " now" : ""}`, style: `background: var(--lane${k % 6})` },
      make("div", {}, ...rows),
      make("div", { class: "came" },
        make("p", {}, `mean of ${part.rows === 1 ? "1 row" : `${part.rows} rows`}${factor} = `, make("span", { class: "number" }, part.loss.text)),
        make("p", {}, make("span", { class: "number" }, texts(part.alone)), make("span", { class: "arrow", "aria-hidden": "true" }, " ⟶ "),
          k === 0 ? "sets" : "is added:"),
        make("p", {}, "w.grad = ", make("strong", { class: "number" }, texts(part.grad)))));
  });
  $("rows").replaceChildren(...lanes);
  $("verdict").replaceChildren(...verdict(answer, toy));
  filled($("ledger"), [["A buffer takes whole lines of", "64 B"], ["All six rows at once, at the peak", bytes(answer.full_peak)], ["One micro-batch at a time, at the peak", bytes(answer.peak)],
    ...answer.parts.slice(0, toy.at).map((part, k) => [`Saved for the backward pass of micro-batch ${k + 1}`, bytes(part.held)])]);
  $("badge").textContent = badge();
}

function numberField(numbers, i, label) {
  const field = make("input", { class: "number", inputmode: "decimal", "aria-label": label, value: short(numbers[i]) });
  field.addEventListener("change", () => {
    const value = numberIn(field, $("toy-complaint"), label, anyNumber);
    if (value === null) return;
    numbers[i] = Math.fround(value);
    show();
    const again = [...document.querySelectorAll("#toy input.number")].find((one) => one.getAttribute("aria-label") === label);
    if (again) again.focus();
  });
  return field;
}

function cutButton(row, isCut) {
  return make("button", { type: "button", class: "cut", "aria-pressed": String(isCut), "aria-label": `Cut between rows ${row} and ${row + 1}`,
    onclick: () => {
      const after = new Set();
      let end = 0;
      for (const size of state.toy.cuts) after.add((end += size) - 1);
      if (isCut) after.delete(row); else after.add(row);
      const cuts = [];
      let from = 0;
      for (let r = 0; r < 6; ++r) if (r === 5 || after.has(r)) { cuts.push(r + 1 - from); from = r + 1; }
      cutBy(cuts);
      document.querySelector(`[aria-label="Cut between rows ${row} and ${row + 1}"]`).focus();
    } }, isCut ? "✂ cut: join" : "cut here");
}

function verdict(answer, toy) {
  const lines = [make("p", {}, "All six rows at once: w.grad = ", make("strong", { class: "number" }, texts(answer.full)))];
  if (toy.at < toy.cuts.length) return [...lines, make("p", {}, `After ${toy.at} of ${toy.cuts.length} micro-batches.`)];
  lines.push(make("p", {}, "Added up: w.grad = ", make("strong", { class: "number" }, texts(answer.sum))));
  if (answer.same) return [...lines, make("p", { class: "same" }, "The same, in every bit.")];
  return [...lines, make("p", { class: "other" }, difference(answer, toy))];
}

function difference(answer, toy) {
  const full = answer.full.map(valueOf), sum = answer.sum.map(valueOf), n = toy.cuts.length;
  const close = (factor) => full.every((x, i) => Math.abs(sum[i] - factor * x) <= 1e-5 * Math.abs(factor * x));
  if (close(1) && new Set(toy.cuts).size > 1 && toy.divide === 1)
    return "Nearly the same by chance: a mean of means weighs rows unequally, and these rows do not show it.";
  if (close(1)) return "The same except for the last bits, because the sums were rounded in another order.";
  if (toy.divide === 0 && close(n)) return `${n} times too large: ${n} means were added up, and nothing divided their sum by ${n}.`;
  if (toy.divide === 0) return "Another gradient: each row weighs 1 over the rows of its own micro-batch, and it should weigh 1/6.";
  return `Another gradient: a mean of means. A row of a small micro-batch weighs more than one of a large micro-batch; it should weigh 1/6.`;
}

function badge() {
  const [x, w] = [tensor("full-batch", "x").values.flat(), tensor("full-batch", "w").values];
  const mine = (divide) => ask("toy", Float32Array.from(x), 18, Float32Array.from(w), Int32Array.from([2, 2, 2]), 3, divide);
  const once = mine(0), divided = mine(1);
  const theirs = (name) => tensor("divide", name).values.map(bitsOf).join(" ");
  const same = bits(once.full) === theirs("full batch") && bits(once.sum) === theirs("sum of the micro-batches") && bits(divided.sum) === theirs("w.grad");
  return same ? `Your browser's bits of the course's toy: ${bits(once.full)}; the same as the C++ program's.`
    : `Your browser's bits of the course's toy are ${bits(once.full)}; the C++ program's are ${theirs("full batch")}. They should be the same.`;
}

function playOrStop() {
  if (playing) { clearInterval(playing); playing = null; }
  else {
    if (state.toy.at === state.toy.cuts.length) { state.toy.at = 0; show(); }
    playing = setInterval(() => {
      if (state.part !== "toy" || state.toy.at >= state.toy.cuts.length) return playOrStop();
      ++state.toy.at;
      show();
    }, 1200);
  }
  $("play").setAttribute("aria-pressed", String(Boolean(playing)));
  $("play").textContent = playing ? "Stop" : "Play";
}
