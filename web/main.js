// Starts the page, shows the chosen part, and handles links, undo and codes.
import { ask, hasEngine, lessons, startEngine, unpackLessons } from "./calls.js";
import * as chain from "./chain.js";
import { announce, byId, set } from "./elements.js";
import * as lessonsPart from "./lessons.js";
import * as noise from "./noise.js";
import { PARTS, START, codeOf, patched, readCode, readLink } from "./state.js";
import { begin, canRedo, canUndo, change, follow, now, onchange, redo, undo, writeLink } from "./store.js";
import { text } from "./texts.js";
import * as toy from "./toy.js";

const parts = { toy, lessons: lessonsPart, chain, noise };
const built = new Set();

// A lesson can show a live part next to its card.
const shownParts = (state) => [state.part, state.part === "lessons" && hasEngine() ? lessonsPart.liveOf(state) : null].filter(Boolean);

function render(state, before) {
  const shown = shownParts(state);
  for (const part of PARTS) set(byId(part), { hidden: !shown.includes(part) });
  const isAlone = lessonsPart.isAlone(state);
  document.body.classList.toggle("cards", shown.length > 1 && !isAlone);
  document.body.classList.toggle("alone", isAlone);
  for (const anchor of document.querySelectorAll("nav a"))
    set(anchor, { "aria-current": anchor.hash === `#part=${state.part}` ? "page" : false });
  set(byId("undo"), { disabled: !canUndo() });
  set(byId("redo"), { disabled: !canRedo() });
  const code = codeOf(state);
  if (document.activeElement !== byId("code")) byId("code").value = code;
  for (const part of shown) {
    if (part !== "lessons" && !hasEngine()) continue;
    if (!built.has(part)) {
      built.add(part);
      parts[part].build(byId(part));
    }
    parts[part].update(state, before);
  }
  if (before.part !== state.part) scrollTo(0, 0);
}

function showPart(part) {
  writeLink();
  history.pushState(null, "", `#part=${part}`); // so that "back" of the browser leads to the part before
  change({ part });
}

function followLink() {
  const unread = follow(location.hash);
  if (unread.length) announce(text("start.unread", { names: unread.join(", ") }));
}

function listen() {
  addEventListener("popstate", followLink);
  addEventListener("hashchange", followLink);
  for (const anchor of document.querySelectorAll("nav a")) anchor.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    announce("");
    showPart(new URLSearchParams(anchor.hash.slice(1)).get("part"));
  });
  byId("undo").addEventListener("click", undo);
  byId("redo").addEventListener("click", redo);
  byId("copy").addEventListener("click", async () => {
    writeLink();
    try {
      await navigator.clipboard.writeText(location.href);
      announce(text("copied"), false);
    } catch {
      announce(text("notCopied"));
    }
  });
  byId("code").addEventListener("change", () => {
    const words = byId("code").value, patch = readCode(words);
    if (words.trim() === "") byId("code").value = codeOf(now());
    else if (!patch) announce(text("noCode", { text: words.trim() }));
    else {
      announce("");
      change(patch);
    }
  });
  addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || event.target.matches("input:not([type=range])")) return;
    const key = event.key.toLowerCase();
    if (key === "z" && !event.shiftKey) undo();
    else if (key === "y" || (key === "z" && event.shiftKey)) redo();
    else return;
    event.preventDefault();
  });
  addEventListener("beforeprint", () => document.activeElement?.blur?.());
}

async function start() {
  const failed = (why) => announce(text("start.failed", { why: why?.message ?? why }));
  addEventListener("error", (event) => failed(event.error ?? event.message));
  addEventListener("unhandledrejection", (event) => failed(event.reason));
  try {
    await unpackLessons();
  } catch {
    announce(text("start.damagedLessons"));
    return;
  }
  if (typeof WebAssembly === "undefined") announce(text("start.noWebAssembly"));
  else {
    let instantiate = null;
    try {
      instantiate = await startEngine();
    } catch {
      announce(text("start.damagedEngine"));
    }
    try {
      await instantiate?.();
    } catch (error) {
      announce(text("start.engineFailed", { why: error.message }));
    }
  }
  onchange(render);
  listen();
  const { state, unread } = readLink(location.hash, hasEngine() ? START : patched(START, { part: "lessons" }));
  if (unread.length) announce(text("start.unread", { names: unread.join(", ") }));
  if (state.lessons.lesson && !lessons.some((one) => one.number === state.lessons.lesson)) state.lessons.lesson = 0;
  begin(state);
  document.documentElement.dataset.ready = "yes";
}

globalThis.tally = { ask, change, lessons, now }; // for tests, and for the console
start();
