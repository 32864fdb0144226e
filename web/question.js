// Shows a question: its options or its field, hints, votes, and the verdict below it. Nothing above the verdict moves.
import { make, patch, set, setText } from "./elements.js";
import { countOf, judge, needsSigns, orderOf, readAnswer } from "./lesson_model.js";
import { parseNumber, readable } from "./numbers.js";
import { text } from "./texts.js";

const answerOf = (question) => {
  const words = question.options[question.answer - 1];
  return question.kind === "number" ? readable(words) : text("lessons.quoted", { words });
};

const mistakeOf = ({ mistake, side }) => mistake || (side ? text(side === "high" ? "lessons.high" : "lessons.low") : "");

// Returns the sentence that tells the learner first whether the answer was right.
function firstWords(question, { tries, isOver, isRight }) {
  if (!tries.length && !isOver) return "";
  const answer = answerOf(question);
  if (!isOver) return text("lessons.again", { mistake: mistakeOf(tries[0]) });
  if (!isRight) return text(tries.length ? "lessons.wrong" : "lessons.shown", { answer });
  const { words } = tries.at(-1);
  const isExact = question.kind !== "number" || Math.abs(parseNumber(words) - Number(question.options[question.answer - 1])) < 1e-9;
  return isExact ? text("lessons.right") : text("lessons.rightNearly", { answer });
}

// Returns the lines below the first sentence: the mistake of each wrong try or of each wrong vote, and the explanation.
function otherWords(question, { tries, isOver }, votes) {
  if (!isOver) return [];
  const wrong = tries.map((one, i) => one.isRight ? null : text(i ? "lessons.secondTry" : "lessons.firstTry",
    { words: question.kind === "number" ? one.words : text("lessons.quoted", { words: one.words }), mistake: mistakeOf(one) }));
  const counts = votes ? question.options.map((_, i) => Math.max(...votes.rounds.map((round) => round[i]))) : [];
  const voted = counts.map((count, i) => count && question.mistakes[i]
    ? text("lessons.votedFor", { n: count, option: question.options[i], mistake: question.mistakes[i] }) : null);
  return [...wrong, ...(tries.length ? [] : voted), text("lessons.why", { why: question.why })].filter(Boolean);
}

function makeOption(question, index, place, hands) {
  const act = (event) => {
    if (!hands.isVoting()) hands.answer(question, question.ids[index]);
    else hands.vote(question, index, event.shiftKey ? -1 : 1);
  };
  const words = question.kind === "number" ? readable(question.options[index]) : question.options[index];
  const mark = make("span", { class: "mark" });
  const button = make("button", {
    type: "button", onclick: act,
    oncontextmenu: (event) => {
      if (!hands.isVoting()) return;
      event.preventDefault();
      hands.vote(question, index, -1);
    },
  }, make("span", { class: "digit", "aria-hidden": "true" }, String(place + 1)), make("span", {}, words), mark);
  const bars = make("div", { class: "bars" });
  return Object.assign(make("div", { class: "option", "data-index": String(index) }, button, bars), { button, mark, bars });
}

function showOption(row, question, verdict, votes, isVoting) {
  const index = Number(row.dataset.index), right = index === question.answer - 1;
  const chosen = verdict.tries.findIndex((one) => one.index === index);
  const kind = verdict.isOver && right ? "right" : chosen >= 0 ? "wrong" : "";
  set(row, { class: `option ${kind}` });
  set(row.button, { disabled: verdict.isOver || (!isVoting && chosen >= 0) });
  const mark = { right: "markRight", wrong: chosen ? "markSecond" : "markFirst" }[kind];
  setText(row.mark, mark ? text(`lessons.${mark}`) : "");
  showBars(row.bars, index, votes, verdict.isOver);
}

// Shows one bar for each round, but not while a class still votes.
function showBars(bars, index, votes, isOver) {
  const rounds = votes && (votes.isShown || isOver) ? votes.rounds : [];
  const most = Math.max(1, ...rounds.flat());
  const makeBar = () => make("div", {}, make("span", { class: "length" }), make("span", { class: "count" }));
  patch(bars, rounds.map((counts, round) => ({ count: counts[index], round })), (one) => one.round, makeBar, (bar, { count, round }) => {
    bar.firstChild.style.setProperty("--share", String(count / most));
    set(bar, { class: `bar-of-votes round${round}` });
    const name = rounds.length < 2 ? "lessons.votes" : round ? "lessons.votesAfter" : "lessons.votesBefore";
    setText(bar.lastChild, text(name, { n: count }));
  });
}

function makeField(question, hands, complain) {
  const field = make("input", {
    class: "number", inputmode: needsSigns(question) ? "text" : "decimal", autocomplete: "off", spellcheck: "false",
    "aria-label": text("lessons.yourNumber"), "aria-describedby": `note-${hands.key}`, oninput: () => complain(""),
  });
  const button = make("button", { class: "key" }, text("lessons.answer"));
  const form = make("form", {
    class: "typed", novalidate: true,
    onsubmit: (event) => {
      event.preventDefault();
      const { wrong } = readAnswer(field.value);
      if (!wrong) hands.answer(question, field.value);
      else {
        complain(text(`lessons.${wrong}`, { text: field.value.trim() }));
        field.focus();
      }
    },
  }, field, button);
  return Object.assign(form, { field, button });
}

// Makes the element of a question. `hands` has the functions answer, giveUp, hint, vote, showVotes, talk and isVoting.
// The element has refresh({record, votes, isVoting, isArmed, number, total}).
export function makeQuestion(question, hands) {
  const ask = make("h3", { class: "ask", tabindex: "-1" });
  const note = make("p", { class: "note-line", role: "status", id: `note-${hands.key}` });
  const form = question.kind === "number" ? makeField(question, hands, (words) => setText(note, words)) : null;
  const options = orderOf(question).map((index, place) => makeOption(question, index, place, hands));
  const list = make("div", { class: "options", role: "group", "aria-label": text("lessons.options") }, ...options);
  const hints = make("ol", { class: "hints", "aria-live": "polite" });
  const button = (name, act) => make("button", { type: "button", class: "small", onclick: () => act(question) }, text(`lessons.${name}`));
  const hint = button("hint", hands.hint), giveUp = button("giveUp", hands.giveUp);
  const showVotes = button("showVotes", hands.showVotes), talk = button("talk", hands.talk), votes = make("span", { class: "quiet" });
  giveUp.classList.add("give-up");
  const helps = make("div", { class: "helps" }, showVotes, talk, votes, hint, giveUp);
  const said = make("p", { class: "said", id: `said-${hands.key}` });
  const verdict = make("div", { class: "verdict", tabindex: "-1", role: "group", "aria-labelledby": said.id }, said);
  const element = make("section", { class: "question", "data-question": String(question.id) },
    ask, form ?? "", list, note, hints, helps, verdict);

  if (form) verdict.addEventListener("keydown", (event) => {
    if (!/^[-.,\d\u2212]$/.test(event.key) || event.ctrlKey || event.metaKey || event.altKey || form.field.disabled) return;
    form.field.focus(); // the field then receives the key
    form.field.select();
  });

  let shownRecord = null;
  element.refresh = ({ record, votes: counted, isVoting, isArmed, number, total }) => {
    const judged = judge(question, record), hasVotes = counted && counted.rounds.flat().some(Boolean);
    setText(ask, text("lessons.ask", { number, total, question: question.question }));
    const hasOptions = !form || (judged.isOver ? hasVotes : isVoting);
    set(list, { hidden: !hasOptions });
    options.forEach((row) => showOption(row, question, judged, hasVotes || isVoting ? counted : null, isVoting));
    if (form) {
      set(form, { hidden: hasOptions });
      set(form.field, { disabled: judged.isOver });
      set(form.button, { disabled: judged.isOver });
      if (record !== shownRecord && record.tries.length && document.activeElement !== form.field) form.field.value = record.tries.at(-1);
    }
    patch(hints, question.hints.slice(0, record.hints), (words) => words, (words) => make("li", {}, words));
    const isAsking = isVoting && !judged.isOver;
    set(hint, { hidden: judged.isOver || record.hints >= question.hints.length });
    setText(hint, text(record.hints ? "lessons.nextHint" : "lessons.hint"));
    set(giveUp, { hidden: judged.isOver });
    setText(giveUp, text(isArmed ? "lessons.pressAgain" : isAsking ? "lessons.showAnswer" : "lessons.giveUp"));
    set(showVotes, { hidden: !isAsking });
    set(talk, { hidden: !isAsking || counted.rounds.length > 1 });
    set(votes, { hidden: !isAsking });
    if (isAsking) {
      setText(showVotes, text(counted.isShown ? "lessons.hideVotes" : "lessons.showVotes"));
      setText(votes, text(counted.rounds.length > 1 ? "lessons.countAfter" : "lessons.count", { n: countOf(counted.rounds.at(-1)) }));
    }
    const words = firstWords(question, judged);
    const kind = judged.isRight ? "good" : judged.tries.length ? "bad" : "";
    set(verdict, { hidden: words === "", class: `verdict ${kind}` });
    setText(said, words);
    patch(verdict, ["said", ...otherWords(question, judged, isVoting || hasVotes ? counted : null)], (line) => line,
      (line) => make("p", {}, line));
    if (record !== shownRecord && judged.tries.length) setText(note, "");
    shownRecord = record;
  };
  element.verdict = verdict;
  element.options = options;
  element.field = form?.field ?? null;
  said.dataset.key = "said";
  return element;
}
