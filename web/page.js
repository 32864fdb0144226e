// The page: asks the engine, and shows its answers. Of its own it computes the spread of the cloud, and how two gradients compare.
"use strict";

const $ = (id) => document.getElementById(id);
const PARTS = ["toy", "lessons", "chain", "noise"];
let engine = null;    // the WebAssembly module, once it runs
let recorded = [];    // the lessons' events, once unpacked

// ---- documents -------------------------------------------------------------------------------------------------

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

function drawn(width, height, label, ...shapes) {
  const namespace = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(namespace, "svg");
  for (const [name, value] of Object.entries({ viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label }))
    svg.setAttribute(name, value);
  for (const [tag, attributes, text] of shapes) {
    const shape = document.createElementNS(namespace, tag);
    for (const [name, value] of Object.entries(attributes)) shape.setAttribute(name, value);
    if (text !== undefined) shape.textContent = text;
    svg.append(shape);
  }
  return svg;
}

function filled(table, rows, head) {
  const line = (cells, first) => make("tr", {}, ...cells.map((cell, i) => make(first || i === 0 ? "th" : "td",
    { class: !first && i > 0 ? "n" : undefined, scope: first ? "col" : i === 0 ? "row" : undefined }, String(cell))));
  const parts = head ? [make("thead", {}, line(head, true))] : [];
  table.replaceChildren(...table.querySelectorAll("caption"), ...parts, make("tbody", {}, ...rows.map((row) => line(row, false))));
  return table;
}

// Buttons of which one is chosen; arrows move among them.
function choices(into, names, chosen, choose) {
  into.setAttribute("role", "radiogroup");
  into.replaceChildren(...names.map((name, i) => make("button", {
    type: "button", role: "radio", "aria-checked": String(i === chosen), tabindex: i === Math.max(chosen, 0) ? "0" : "-1",
    onclick: () => choose(i),
    onkeydown: (event) => {
      const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!by) return;
      event.preventDefault();
      const to = (i + by + names.length) % names.length;
      choose(to);
      into.children[to].focus();
    } }, name)));
}

const tell = (words) => { $("told").textContent = words; };

// ---- numbers ---------------------------------------------------------------------------------------------------

// The number of a field, or null, with a sentence beside it; what was shown stays.
function numberIn(field, complaint, what, holds) {
  const text = field.value.trim(), value = Number(text);
  const wrong = text === "" ? "is empty" : Number.isNaN(value) ? `is no number: ${text}`
    : !Number.isFinite(Math.fround(value)) ? `is too large for 32 bits: ${text}` : holds(value);
  field.setAttribute("aria-invalid", String(Boolean(wrong)));
  complaint.textContent = wrong ? `${what} ${wrong}. What you see is still the last good one.` : "";
  return wrong ? null : value;
}
const anyNumber = () => "";
const wholeBetween = (least, most) => (value) => Number.isInteger(value) && value >= least && value <= most ? ""
  : `is not a whole number from ${least} to ${most}: ${value}`;

// The fewest digits that a 32-bit number is read back from.
function short(value) {
  for (let digits = 1; digits < 9; ++digits)
    if (Math.fround(Number(value.toPrecision(digits))) === Math.fround(value)) return String(Number(value.toPrecision(digits)));
  return String(value);
}

function bitsOf(value) {
  const view = new DataView(new ArrayBuffer(4));
  view.setFloat32(0, value);
  return view.getUint32(0).toString(16).padStart(8, "0");
}

function valueOf(x) {
  const view = new DataView(new ArrayBuffer(4));
  view.setUint32(0, parseInt(x.bits, 16));
  return view.getFloat32(0);
}

const bytes = (n) => n < 1024 ? `${n} B` : `${(n / 1024).toFixed(1)} KiB`;
const texts = (numbers) => `[${numbers.map((x) => x.text).join("  ")}]`;
const bits = (numbers) => numbers.map((x) => x.bits).join(" ");

// ---- the engine ------------------------------------------------------------------------------------------------

async function unpacked(id) {
  const packed = Uint8Array.from(atob($(id).textContent.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function ask(name, ...values) {
  const places = [];
  const given = values.map((value) => {
    if (typeof value === "number") return value;
    const place = engine._malloc(4 * value.length);
    places.push(place);
    (value instanceof Float32Array ? engine.HEAPF32 : engine.HEAP32).set(value, place / 4);
    return place;
  });
  const said = engine.UTF8ToString(engine[`_tally_${name}`](...given));
  places.forEach((place) => engine._free(place));
  const answer = JSON.parse(said);
  if (answer.error) throw new Error(answer.error);
  return answer;
}

// ---- the state, which is also the link -------------------------------------------------------------------------

const state = { part: "toy", toy: null, lesson: 5, step: 1, present: 0, keep: null, size: 8, seed: 0 };

function tensor(number, name) {
  const lesson = recorded.find((one) => one.number === number);
  return lesson && lesson.events.find((event) => event.event === "tensor" && event.name === name);
}
function courseToy() {
  return { x: tensor(5, "x").values.flat(), w: tensor(5, "w").values, cuts: [2, 2, 2], divide: 0, at: 3 };
}

function link() {
  const fields = new URLSearchParams({ part: state.part });
  if (state.part === "toy" && state.toy) {
    const course = courseToy();
    fields.set("cuts", state.toy.cuts.join(","));
    fields.set("divide", state.toy.divide);
    fields.set("at", state.toy.at);
    for (const name of ["x", "w"])
      if (String(state.toy[name]) !== String(course[name])) fields.set(name, state.toy[name].map(short).join(","));
  }
  if (state.part === "lessons") {
    fields.set("lesson", state.lesson);
    fields.set("step", state.step);
    if (state.present) fields.set("present", 1);
  }
  if (state.part === "chain" && state.keep) fields.set("keep", state.keep.map(Number).join(""));
  if (state.part === "noise") { fields.set("size", state.size); fields.set("seed", state.seed); }
  history.replaceState(null, "", `#${fields}`);
}

// What a link says; a word for what it says wrongly.
function followed(hash) {
  const fields = new URLSearchParams(hash.replace(/^#/, ""));
  const list = (name, length) => {
    if (!fields.has(name)) return null;
    const numbers = fields.get(name).split(",").map((text) => text.trim() === "" ? NaN : Number(text));
    if (numbers.some((x) => !Number.isFinite(Math.fround(x))) || (length && numbers.length !== length)) throw new Error(name);
    return numbers;
  };
  const whole = (name, least, most, otherwise) => {
    if (!fields.has(name)) return otherwise;
    const value = Number(fields.get(name));
    if (fields.get(name) === "" || wholeBetween(least, most)(value)) throw new Error(name);
    return value;
  };
  const next = { ...state, toy: recorded.length ? courseToy() : null };
  next.part = fields.get("part") ?? "toy";
  if (!PARTS.includes(next.part)) throw new Error("part");
  if (next.toy) {
    next.toy.x = list("x", 18) ?? next.toy.x;
    next.toy.w = list("w", 3) ?? next.toy.w;
    next.toy.cuts = list("cuts") ?? next.toy.cuts;
    if (next.toy.cuts.some((size) => wholeBetween(1, 6)(size)) || next.toy.cuts.reduce((a, b) => a + b, 0) !== 6) throw new Error("cuts");
    next.toy.divide = whole("divide", 0, 2, 0);
    next.toy.at = whole("at", 0, next.toy.cuts.length, next.toy.cuts.length);
  }
  next.lesson = whole("lesson", 1, 99, next.lesson);
  next.step = whole("step", 1, 99, 1);
  next.present = whole("present", 0, 1, 0);
  if (recorded.length && !recorded.some((one) => one.number === next.lesson)) throw new Error("lesson");
  if (fields.has("keep")) {
    if (!/^[01]{2,64}$/.test(fields.get("keep"))) throw new Error("keep");
    next.keep = [...fields.get("keep")].map((digit) => digit === "1");
  }
  next.size = whole("size", 1, 512, next.size);
  next.seed = whole("seed", 0, 1e6, next.seed);
  return next;
}

function follow() {
  try {
    Object.assign(state, followed(location.hash));
  } catch (error) {
    const part = state.part;
    Object.assign(state, followed(""));
    tell(`The link's "${error.message}" cannot be read: this is the start.`);
    if (part !== state.part) link();
  }
  show();
}

function show() {
  for (const part of PARTS) $(part).hidden = part !== state.part;
  for (const anchor of document.querySelectorAll("nav a"))
    if (anchor.hash === `#part=${state.part}`) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  document.body.classList.toggle("presenting", state.part === "lessons" && Boolean(state.present) && !$("handout").checked);
  if (state.part === "lessons") showLesson();
  else if (engine) ({ toy: showToy, chain: showChain, noise: showNoise })[state.part]();
  link();
}

// ---- the toy ---------------------------------------------------------------------------------------------------

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
  filled($("ledger"), [["A buffer takes whole lines of", "64 B"], ["All six rows at once, at the peak", bytes(answer.full_peak)], ["One micro-batch after another, at the peak", bytes(answer.peak)],
    ...answer.parts.slice(0, toy.at).map((part, k) => [`Held for the way back of micro-batch ${k + 1}`, bytes(part.held)])]);
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
    return "Nearly the same, by luck: a mean of means weighs rows unequally, and these rows do not show it.";
  if (close(1)) return "The same but for the last bits: the additions were rounded at other places.";
  if (toy.divide === 0 && close(n)) return `${n} times too large: ${n} means were added up, and nothing divided their sum by ${n}.`;
  if (toy.divide === 0) return "Another gradient: each row weighs 1 over the rows of its own micro-batch, and it should weigh 1/6.";
  return `Another gradient: a mean of means. A row of a small micro-batch weighs more than one of a large micro-batch; it should weigh 1/6.`;
}

function badge() {
  const [x, w] = [tensor(5, "x").values.flat(), tensor(5, "w").values];
  const mine = (divide) => ask("toy", Float32Array.from(x), 18, Float32Array.from(w), Int32Array.from([2, 2, 2]), 3, divide);
  const once = mine(0), divided = mine(1);
  const theirs = (name) => tensor(7, name).values.map(bitsOf).join(" ");
  const same = bits(once.full) === theirs("full batch") && bits(once.sum) === theirs("sum of 3x2") && bits(divided.sum) === theirs("sum / (6/2)");
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

// ---- lessons ---------------------------------------------------------------------------------------------------

const LIVE = { 4: "part=noise", 5: "part=toy&cuts=6&divide=1", 6: "part=toy&cuts=2,2,2&divide=0", 7: "part=toy&cuts=2,2,2&divide=1", 10: "part=toy&cuts=4,2&divide=1",
  19: "part=chain", 20: "part=chain", 21: "part=chain" };  // where a lesson can be tried
const answered = new Set();  // the predictions of this visit, as "lesson/number"
const hands = new Map();     // of a class: how many for each option of a prediction

function showLesson() {
  const lesson = recorded.find((one) => one.number === state.lesson);
  if (!lesson) return;
  const title = (one) => one.events.find((event) => event.event === "title");
  if ($("lesson").children.length === 0)
    $("lesson").replaceChildren(...recorded.map((one) => make("option", { value: one.number },
      `${one.number}. ${title(one) ? title(one).title : "needs a GPU"}`)));
  $("lesson").value = state.lesson;
  $("present").checked = Boolean(state.present);
  const steps = title(lesson) ? title(lesson).steps : 1;
  state.step = Math.min(state.step, steps);
  if ($("handout").checked) {
    $("talk").replaceChildren(...handout(lesson));
    $("on").hidden = true;
    return;
  }
  const presenting = document.body.classList.contains("presenting");
  const shown = presenting ? [make("p", { class: "quiet" }, `Lesson ${lesson.number}: ${title(lesson)?.title ?? ""}, step ${state.step} of ${steps}`)] : [];
  const keys = new Map(lesson.events.filter((event) => event.event === "prediction").map((event, i) => [event, `${state.lesson}/${i + 1}`]));
  let open = false, holds = [];
  const fold = () => { shown.push(...folded(holds)); holds = []; };
  for (const [i, event] of lesson.events.entries()) {
    if (event.step > state.step || open) break;
    if (event.step !== lesson.events[i - 1]?.step) fold();
    if (presenting && event.step !== state.step) continue;
    if (event.event === "check" && event.ok) holds.push(event);
    else if (event.event === "prediction") {
      open = event.step === state.step && !answered.has(keys.get(event));
      shown.push(questionAbout(event, keys.get(event), !open));
    } else if (event.event === "graph") {
      const next = lesson.events.slice(i).find((later) => keys.has(later));
      const tells = next && next.step <= event.step + 1 && !answered.has(keys.get(next));
      shown.push(make("details", { open: !tells }, make("summary", {}, tells ? "The picture (it shows the next answer)" : "The picture"), ...told(event)));
    } else shown.push(...told(event));
  }
  fold();
  if (LIVE[lesson.number] && state.step === steps && !open) shown.push(make("p", {}, make("a", { href: `#${LIVE[lesson.number]}` }, "Try it yourself, with the engine")));
  $("talk").replaceChildren(...shown);
  $("back-step").hidden = state.step === 1;
  $("next-step").hidden = open || state.step >= steps;
  $("on").hidden = $("back-step").hidden && $("next-step").hidden;
}

const folded = (checks) => checks.length === 0 ? [] : [make("details", { class: "quiet" },
  make("summary", {}, checks.length === 1 ? "1 check holds" : `${checks.length} checks hold`), ...checks.flatMap(told))];

// What comes before the first question, without pictures, and all questions with room for answers; then everything.
function handout(lesson) {
  const sheet = [make("h2", {}, `Lesson ${lesson.number}: ${lesson.events[0].title ?? "needs a GPU"}`)], answers = [];
  let number = 0;
  for (const event of lesson.events) {
    if (event.event === "prediction") {
      sheet.push(make("div", { class: "question" }, make("p", {}, make("strong", {}, `Question ${++number}. ${event.question}`)),
        ...(event.kind === "number" ? [make("p", {}, "Alone: ____________  After talking: ____________")]
          : event.options.map((option) => make("p", {}, `☐ ☐ ${option}`))), make("p", {}, "Because"), make("div", { class: "line" }), make("div", { class: "line" })));
      answers.push(make("p", {}, make("strong", {}, `Question ${number}. ${event.question}`), make("br"), make("strong", {}, `Answer: ${event.options[event.answer - 1]}. `), event.why,
        ...event.options.flatMap((option, i) => event.mistakes?.[i] ? [make("br"), `${option}: ${event.mistakes[i]}`] : [])));
    } else if (!["reveal", "check", "end"].includes(event.event)) {
      if (number === 0 && event.event !== "graph") sheet.push(...told(event));
      answers.push(...told(event));
    }
  }
  return [...sheet, make("div", { class: "answers" }, make("h3", {}, "Answers"), ...answers)];
}

function told(event) {
  switch (event.event) {
    case "title": return [make("p", { class: "quiet" }, `${event.minutes} minutes, ${event.steps} steps, ${event.dtype} on the ${event.device}`)];
    case "sentence": return event.role === "step" ? [make("h3", {}, `${event.step}. ${event.text}`)] : [make("p", {}, event.text)];
    case "source": return [make("pre", { tabindex: "0", "aria-label": `${event.file}, line ${event.line}` }, event.text)];
    case "tensor": return [make("pre", { tabindex: "0" }, `${event.name} =${event.text.includes("\n") ? "\n" : " "}${event.text}`)];
    case "table": return [filled(make("table", { tabindex: "0" }), event.text, event.columns)];
    case "check": return [make("p", { class: event.ok ? "quiet" : "other" }, `${event.ok ? "holds" : "FAILS"}: ${event.name}${event.exact ? ", in every bit" : ""}`)];
    case "graph": return [make("div", { class: "picture", tabindex: "0" }, make("img", {
      alt: /<desc[^>]*>([^<]*)/.exec(event.svg)?.[1] ?? event.name, src: `data:image/svg+xml,${encodeURIComponent(event.svg)}` }))];
    case "plot": return [make("figure", {}, plotted(event), make("figcaption", { class: "quiet" }, event.name))];
    case "reveal": return [make("p", {}, make("strong", {}, `Answer: ${event.text}. `), event.why)];
    case "end": return event.detail ? [make("p", { class: "quiet" }, event.detail)] : [];
    default: return [];
  }
}

function questionAbout(event, key, isOver) {
  const words = make("p", { role: "status" });
  const right = event.answer - 1;
  const over = () => { answered.add(key); showLesson(); link(); };
  const count = hands.get(key) ?? event.options.map(() => 0);
  hands.set(key, count);
  const counting = $("hands").checked && event.kind !== "number";
  let tries = 0;
  const wrong = (said) => {
    if (++tries === (event.kind === "number" || event.options.length > 2 ? 2 : 1)) return over();
    words.textContent = `${said || "Not so."} Once more?`;
  };
  const answers = make("div", { class: "choice" });
  if (isOver) {
    answers.append(...(event.kind === "number" ? [] : event.options.map((option, i) => make("p", { class: i === right ? "same" : "quiet" },
      count[i] ? `${option} (${count[i]})` : option, i !== right && count[i] && event.mistakes?.[i] ? `: ${event.mistakes[i]}` : ""))));
  } else if (counting) {
    answers.append(...event.options.map((option, i) => make("button", { type: "button", onclick: (click) => {
      click.currentTarget.textContent = `${option} (${++count[i]})`;
    } }, count[i] ? `${option} (${count[i]})` : option)), make("button", { type: "button", class: "answer", onclick: over }, "Show the answer"));
  } else if (event.kind === "number") {
    const field = make("input", { class: "number", inputmode: "decimal", "aria-label": "Your number" });
    const near = (value, i) => Math.abs(value - Number(event.options[i])) <= event.within + 1e-9 * Math.abs(Number(event.options[i]));
    answers.append(make("form", { onsubmit: (submitted) => {
      submitted.preventDefault();
      const value = Number(field.value);
      if (field.value.trim() === "" || Number.isNaN(value)) { words.textContent = "That is no number."; return; }
      if (near(value, right)) return over();
      wrong(event.mistakes[event.options.findIndex((_, i) => near(value, i))] ?? (value > Number(event.options[right]) ? "It is less." : "It is more."));
    } }, field, " ", make("button", {}, "Answer")));
  } else {
    answers.append(...event.options.map((option, i) => make("button", { type: "button", onclick: (click) => {
      if (i === right) return over();
      click.currentTarget.classList.add("wrong");
      click.currentTarget.disabled = true;
      wrong(event.mistakes?.[i]);
    } }, option)));
  }
  const hints = (event.hints ?? [event.hint]).filter((hint) => hint && hint !== event.why);
  const more = isOver || hints.length === 0 ? [] : [make("button", { type: "button", onclick: (click) => {
    words.textContent = hints.shift();
    if (hints.length === 0) click.currentTarget.remove();
  } }, "Hint")];
  if (!isOver && state.present && !counting) more.push(" ", make("button", { type: "button", class: "answer", onclick: over }, "Show the answer"));
  return make("div", { class: "question" }, make("p", {}, make("strong", {}, event.question)), answers, words, ...more);
}

function plotted(event) {
  const all = event.series.flatMap((series) => series.y.map((y, i) => [series.x?.[i] ?? i, y])).filter(([x, y]) => x !== null && y !== null);
  const [width, height, edge] = [640, 320, 50];
  const range = (k) => [Math.min(...all.map((p) => p[k])), Math.max(...all.map((p) => p[k]))];
  const [x0, x1] = range(0), [y0, y1] = event.kind === "bars" ? [0, range(1)[1]] : range(1);
  const across = (x) => edge + (x - x0) / (x1 - x0 || 1) * (width - 2 * edge), up = (y) => height - edge + (y0 - y) / (y1 - y0 || 1) * (height - 2 * edge);
  return drawn(width, height, event.name, ["rect", { class: "axis", x: edge, y: edge, width: width - 2 * edge, height: height - 2 * edge }],
    ...all.map(([x, y]) => event.kind === "bars" ? ["rect", { class: "bar", x: across(x) - 2, y: up(y), width: 4, height: height - edge - up(y) }]
      : ["circle", { class: "point", cx: across(x), cy: up(y), r: 4 }]),
    ["text", { x: edge, y: height - 20 }, short(x0)], ["text", { x: width - edge, y: height - 20, "text-anchor": "end" }, short(x1)],
    ["text", { x: 4, y: height - edge }, short(y0)], ["text", { x: 4, y: edge }, short(y1)]);
}

// ---- checkpoints -----------------------------------------------------------------------------------------------

const every = (n) => (layers) => Array.from({ length: layers }, (_, i) => i % n === 0);

function showChain() {
  state.keep ??= every(4)(16);
  const keep = state.keep, answer = ask("chain", Int32Array.from(keep.map(Number)), keep.length);
  $("layers").value = keep.length;
  $("nodes").replaceChildren(...keep.map((kept, i) => make("button", { type: "button", "aria-pressed": String(kept || i === 0), disabled: i === 0,
    "aria-label": `Keep the input of layer ${i}; it ran ${answer.runs[i] === 1 ? "once" : "twice"}`,
    onclick: () => { keep[i] = !keep[i]; show(); $("nodes").children[i].focus(); } }, String(i))));
  const most = answer.plain, [width, height, edge] = [960, 180, 2], step = (width - edge) / answer.moments.length;
  $("strip").replaceChildren(make("p", { class: "quiet" }, `${bytes(most)}: the peak when everything is kept`), drawn(width, height, "Bytes held, moment by moment",
    ...answer.moments.map((moment, i) => ["rect", { class: `bar ${moment.what}`, x: i * step, y: height - edge - moment.bytes / most * (height - 2 * edge),
      width: Math.max(1, step - 1), height: moment.bytes / most * (height - 2 * edge) }]),
    ["line", { class: "axis", x1: 0, x2: width - edge, y1: edge, y2: edge }]),
  make("p", { class: "quiet" }, "Forward, layer after layer; then, in the second colour, what runs again on the way back."));
  $("strip-words").textContent = `${bytes(answer.peak)} at the peak, ${answer.again} ${answer.again === 1 ? "layer" : "layers"} ran again${answer.same ? "; the gradient has the same bits in all of these ways" : ". The gradients differ: they should not"}.`;
  filled($("costs"), [["everything kept", bytes(answer.plain), 0], ["your choice", bytes(answer.peak), answer.again],
    [`the best cut found within your bytes: ${answer.best.join(" + ")}`, bytes(answer.best_peak), answer.best_again],
    [`Revolve with ${answer.kept === 1 ? "1 snapshot" : `${answer.kept} snapshots`}, as many as you keep`, bytes(answer.revolve_peak), answer.revolve_again]],
  ["", "at the peak", "ran again"]);
}

// ---- noise -----------------------------------------------------------------------------------------------------

function showNoise() {
  const draws = 200, answer = ask("noise", state.seed, state.size, draws);
  $("size").value = state.size;
  $("seed").value = state.seed;
  $("halve").disabled = state.size === 1;
  $("double").disabled = state.size > 256;
  const full = answer.full.map(valueOf), points = answer.points.map((point) => point.map(valueOf));
  const reach = 8, side = 480, place = (x, middle) => side / 2 + (x - middle) / reach * side / 2;  // equal axes, the ring in the middle
  $("cloud").replaceChildren(drawn(side, side, `Gradients of ${draws} micro-batches of ${state.size} items`,
    ["rect", { class: "axis", x: 0.5, y: 0.5, width: side - 1, height: side - 1 }],
    ...points.map(([a, b]) => ["circle", { class: "point", cx: place(a, full[0]), cy: side - place(b, full[1]), r: 4 }]),
    ["circle", { class: "ring", cx: side / 2, cy: side / 2, r: 9 }]));
  const spread = Math.sqrt(points.reduce((sum, [a, b]) => sum + (a - full[0]) ** 2 + (b - full[1]) ** 2, 0) / draws);
  $("cloud-words").textContent = `Micro-batches of ${state.size}: the root mean square distance from the full gradient ${texts(answer.full)} is ${spread.toFixed(3)}. ` +
    "Four times as many items: about half as far.";
}

// ---- before a class --------------------------------------------------------------------------------------------

function toStep(step) {
  state.step = step;
  show();
  if (state.present) return scrollTo(0, 0);
  const last = [...$("talk").querySelectorAll("h3, .question")].pop();
  if (last) last.scrollIntoView();
}

// A clicker's keys are the page keys. What does not fit on the screen is scrolled to before they go on.
function presenterKey(event) {
  if (!document.body.classList.contains("presenting") || event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === "Escape") { state.present = 0; show(); $("present").focus(); return; }
  const at = event.target.tagName;
  if (["INPUT", "SELECT"].includes(at) && event.target.type !== "checkbox") return;
  const click = (button) => { if (button && !button.hidden) { event.preventDefault(); button.click(); } };
  if (/^[1-9]$/.test(event.key)) return click($("talk").querySelectorAll(".choice button:not(.answer)")[event.key - 1]);
  const goesOn = ["PageDown", "ArrowRight"].includes(event.key) || (event.key === " " && !["BUTTON", "INPUT", "SUMMARY"].includes(at));
  const below = $("talk").getBoundingClientRect().bottom - innerHeight;
  if (goesOn && below > 8 && event.key !== "ArrowRight") { event.preventDefault(); scrollBy(0, Math.min(below + 16, innerHeight * 0.8)); }
  else if (goesOn) click(document.querySelector("#talk .answer") ?? $("next-step"));
  if (["PageUp", "ArrowLeft"].includes(event.key) && (scrollY < 8 || event.key === "ArrowLeft")) click($("back-step"));
}

// ---- the controls ----------------------------------------------------------------------------------------------

function listen() {
  addEventListener("hashchange", () => { tell(""); follow(); });
  const to = (at) => () => { state.toy.at = at(state.toy); show(); };
  $("first").onclick = to(() => 0);
  $("back").onclick = to((toy) => Math.max(0, toy.at - 1));
  $("next").onclick = to((toy) => Math.min(toy.cuts.length, toy.at + 1));
  $("play").onclick = playOrStop;
  $("reset-toy").onclick = () => { state.toy = courseToy(); $("toy-complaint").textContent = ""; show(); };
  $("lesson").onchange = () => { state.lesson = Number($("lesson").value); state.step = 1; show(); };
  $("hands").onchange = $("handout").onchange = show;
  $("next-step").onclick = () => toStep(state.step + 1);
  $("back-step").onclick = () => toStep(state.step - 1);
  $("present").onchange = () => { state.present = Number($("present").checked); show(); };
  addEventListener("keydown", presenterKey);
  $("layers").onchange = () => {
    const layers = numberIn($("layers"), $("chain-complaint"), "The number of layers", wholeBetween(2, 64));
    if (layers !== null) { state.keep = every(4)(layers); show(); }
  };
  const kept = (n) => () => { state.keep = every(n)(state.keep.length); show(); };
  $("keep-all").onclick = kept(1);
  $("keep-root").onclick = kept(4);
  $("keep-none").onclick = kept(1000);
  const sized = (size) => { state.size = size; $("noise-complaint").textContent = ""; show(); };
  $("halve").onclick = () => sized(Math.max(1, state.size >> 1));
  $("double").onclick = () => sized(Math.min(512, state.size * 2));
  $("size").onchange = () => {
    const size = numberIn($("size"), $("noise-complaint"), "The number of items", wholeBetween(1, 512));
    if (size !== null) sized(size);
  };
  $("seed").onchange = () => {
    const seed = numberIn($("seed"), $("noise-complaint"), "The seed", wholeBetween(0, 1e6));
    if (seed !== null) { state.seed = seed; show(); }
  };
}

async function begin() {
  $("trouble").hidden = true;  // the end of the file is here
  if (typeof DecompressionStream === "undefined") return tell("This browser cannot unpack the page (DecompressionStream). Chrome 80, Firefox 113 or Safari 16.4 can.");
  try {
    recorded = JSON.parse(new TextDecoder().decode(await unpacked("recorded")));
  } catch {
    return tell("This page was damaged on its way: the checksum of the recorded lessons is wrong. Please copy the file once more.");
  }
  if (typeof WebAssembly === "undefined") {
    tell("This browser has no WebAssembly: the engine cannot run. The recorded lessons can be read.");
    state.part = "lessons";
  } else {
    try {
      const script = new TextDecoder().decode(await unpacked("engine-script")), wasmBinary = await unpacked("engine");
      try {
        engine = await new Function(`${script}; return tallyEngine;`)()({ wasmBinary });
      } catch (error) {
        tell(`The engine does not start in this browser: ${error.message}. The recorded lessons can be read.`);
        state.part = "lessons";
      }
    } catch {
      tell("This page was damaged on its way: the checksum of the engine is wrong. The recorded lessons can be read.");
      state.part = "lessons";
    }
  }
  listen();
  if (!engine && !location.hash) show();
  else follow();
  document.documentElement.dataset.ready = "yes";
}

begin();
