// Holds the state of the page. change() is the only way to change it: it remembers the old state, and updates page and link.
import { START, linkOf, patched, readLink } from "./state.js";

let state = START;
const past = [];
const future = [];
let gesture = null; // the changes of one drag or one playback are one step of undo
let render = () => {};
let linking = 0;

export const now = () => state;
export const onchange = (f) => { render = f; };
export const canUndo = () => past.length > 0;
export const canRedo = () => future.length > 0;

// Browsers limit how often a page may change its link, so the link follows after a pause.
function link() {
  clearTimeout(linking);
  linking = setTimeout(writeLink, 300);
}

export function writeLink() {
  clearTimeout(linking);
  try {
    history.replaceState(null, "", linkOf(state));
  } catch {
    // The browser allows no more changes of the link for now; the next change writes the link.
  }
}

function show(next) {
  const before = state;
  state = next;
  render(state, before);
  link();
}

// Changes the state by a patch such as {toy: {divide: 1}}. Changes with the same `name` in a row are one step of undo.
export function change(patch, name = null) {
  const next = patched(state, patch);
  if (JSON.stringify(next) === JSON.stringify(state)) return;
  if (name === null || name !== gesture) past.push(state);
  gesture = name;
  future.length = 0;
  show(next);
}

// Makes the present state a step of undo, before changes by play().
export function remember() {
  past.push(state);
  future.length = 0;
  gesture = null;
}

// Changes the state without a step of undo: for moments of a playback.
export function play(patch) {
  show(patched(state, patch));
}

export function endGesture() {
  gesture = null;
}

export function undo() {
  if (!past.length) return;
  gesture = null;
  future.push(state);
  show(past.pop());
}

export function redo() {
  if (!future.length) return;
  gesture = null;
  past.push(state);
  show(future.pop());
}

// Follows a link. Returns the names of the fields that cannot be read.
export function follow(hash) {
  const { state: next, unread } = readLink(hash, state);
  if (JSON.stringify(next) !== JSON.stringify(state)) remember();
  show(next);
  return unread;
}

// Begins with a state, without a step of undo.
export function begin(next) {
  show(next);
}
