// Shows the recorded lessons step by step with questions, as a sheet for printing, or in front of a class.

const LIVE = { "full-batch": "part=toy&cuts=6&divide=1", "why-a-large-batch": "part=noise", "forgot-to-divide": "part=toy&cuts=2,2,2&divide=0",
  "divide": "part=toy&cuts=2,2,2&divide=1", "unequal": "part=toy&cuts=4,2&divide=1", "checkpointing": "part=chain", "the-best-schedule": "part=chain" };  // the experiment of the page that a lesson links to
const answered = new Set();  // the predictions that the learner answered in this visit, as "lesson/number"
const hands = new Map();     // for each option of a prediction, the number of learners who raised a hand

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
  if (LIVE[lesson.slug] && state.step === steps && !open) shown.push(make("p", {}, make("a", { href: `#${LIVE[lesson.slug]}` }, "Try it yourself, with the engine")));
  $("talk").replaceChildren(...shown);
  $("back-step").hidden = state.step === 1;
  $("next-step").hidden = open || state.step >= steps;
  $("on").hidden = $("back-step").hidden && $("next-step").hidden;
}

const folded = (checks) => checks.length === 0 ? [] : [make("details", { class: "quiet" },
  make("summary", {}, checks.length === 1 ? "1 check holds" : `${checks.length} checks hold`), ...checks.flatMap(told))];

// Returns a sheet: first the text before the first question without pictures, then all questions with space for answers, then all events.
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
    case "title": return [make("p", { class: "quiet" }, `${event.minutes} minutes, ${event.steps} steps, on the ${event.device}`)];
    case "sentence": return event.role === "step" ? [make("h3", {}, `${event.step}. ${event.text}`)] : [make("p", {}, event.text)];
    case "source": return [make("pre", { tabindex: "0", "aria-label": `${event.file}, line ${event.line}` },
      ...event.text.split("\n").map((line, i, all) => make("span", {}, i + 1 < all.length ? `${line}\n` : line)))];
    case "tensor": return [make("pre", { tabindex: "0" }, `${event.name} =${event.text.includes("\n") ? "\n" : " "}${event.text}`)];
    case "table": return [filled(make("table", { tabindex: "0" }), event.text, event.columns)];
    case "check": return [make("p", { class: event.ok ? "quiet" : "other" }, `${event.ok ? "holds" : "FAILS"}: ${event.name}${event.exact ? ", in every bit" : ""}`)];
    case "graph": return [make("div", { class: "picture", tabindex: "0" }, make("img", {
      style: `--shape: ${/viewBox="0 0 ([\d.]+ [\d.]+)"/.exec(event.svg)?.[1].replace(" ", " / ") ?? 1}`, alt: /<desc[^>]*>([^<]*)/.exec(event.svg)?.[1] ?? event.name, src: `data:image/svg+xml,${encodeURIComponent(event.svg)}` }))];
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
      if (field.value.trim() === "" || Number.isNaN(value)) { words.textContent = "That is not a number."; return; }
      if (near(value, right)) return over();
      wrong(event.mistakes[event.options.findIndex((_, i) => near(value, i))] ?? (value > Number(event.options[right]) ? "The answer is smaller." : "The answer is larger."));
      field.select();
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
  const more = isOver || hints.length === 0 ? [] : [make("button", { type: "button", class: "hint", onclick: (click) => {
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

// ---- in front of a class --------------------------------------------------------------------------------------------

function toStep(step) {
  state.step = step;
  show();
  if (state.present) return scrollTo(0, 0);
  const last = [...$("talk").querySelectorAll("h3, .question")].pop();
  if (last) last.scrollIntoView();
}

// A slide clicker sends PageDown and PageUp. If a step does not fit the screen, these keys first scroll through the step.
function presenterKey(event) {
  if (!document.body.classList.contains("presenting") || event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === "Escape") { state.present = 0; show(); $("present").focus(); return; }
  const at = event.target.tagName;
  const typed = ["INPUT", "SELECT"].includes(at) && event.target.type !== "checkbox";
  if (typed && !["PageDown", "PageUp"].includes(event.key)) return;  // a clicker changes the step even if a field has the focus
  if (typed) {
    event.preventDefault();
    if (event.key === "PageUp" && scrollY >= 8) return scrollBy(0, -innerHeight * 0.8);
  }
  const click = (button) => { if (button && !button.hidden) { event.preventDefault(); button.click(); } };
  const field = $("talk").querySelector("input.number");
  if (field && /^[-.0-9]$/.test(event.key)) return field.focus();  // the field then receives the key
  const opened = { h: ".hint", g: "details:not(.quiet) > summary", c: "details.quiet > summary" }[event.key];
  if (opened) {
    click($("talk").querySelector(opened));
    return event.key === "g" && $("talk").querySelector("details:not(.quiet)")?.scrollIntoView();
  }
  if (/^[1-9]$/.test(event.key)) return click($("talk").querySelectorAll(".choice button:not(.answer)")[event.key - 1]);
  const goesOn = ["PageDown", "ArrowRight"].includes(event.key) || (event.key === " " && !["BUTTON", "INPUT", "SUMMARY"].includes(at));
  const below = $("talk").getBoundingClientRect().bottom - innerHeight;
  if (goesOn && below > 8 && event.key !== "ArrowRight") {
    const cut = [...$("talk").querySelectorAll("details[open]:not(.quiet)")].map((one) => one.getBoundingClientRect())
      .find((box) => box.bottom > innerHeight + 8 && box.top > innerHeight * 0.1);  // scrolls to the top of a picture, so that the picture is not cut
    event.preventDefault();
    scrollBy(0, Math.min(below + 16, innerHeight * 0.8, cut ? cut.top : Infinity));
  }
  else if (goesOn) click(document.querySelector("#talk .answer") ?? $("next-step"));
  if (["PageUp", "ArrowLeft"].includes(event.key) && (scrollY < 8 || event.key === "ArrowLeft")) click($("back-step"));
}
