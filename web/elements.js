// Makes and updates elements of the page. A text never becomes HTML.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

// Changes attributes of an element; false removes an attribute. Attributes on... add listeners, so pass these only once.
export function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value === false || value === undefined || value === null) element.removeAttribute(name);
    else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
  }
  return element;
}

export function make(tag, attributes = {}, ...children) {
  const element = set(document.createElement(tag), attributes);
  element.append(...children);
  return element;
}

// Makes a shape in an SVG picture.
export function shape(tag, attributes = {}, ...children) {
  const element = set(document.createElementNS(SVG, tag), attributes);
  element.append(...children);
  return element;
}

export function setText(element, words) {
  if (element.textContent !== words) element.textContent = words;
}

// Shows one child for each item: keeps the children of the same keys, makes the missing ones, and updates all of them.
export function patch(parent, items, keyOf, makeOne, updateOne = () => {}) {
  const kept = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  let next = parent.firstElementChild;
  for (const item of items) {
    const key = String(keyOf(item));
    let child = kept.get(key);
    if (child) kept.delete(key);
    else {
      child = makeOne(item);
      child.dataset.key = key;
    }
    if (child === next) next = next.nextElementSibling;
    else parent.insertBefore(child, next);
    updateOne(child, item);
  }
  for (const child of kept.values()) child.remove();
}

// Makes a group of buttons of which one is chosen. The arrow keys change the choice. `group.choose(i)` marks a button.
export function choices(label, names, onchoose) {
  const group = make("div", { class: "choice", role: "radiogroup", "aria-label": label });
  const buttons = names.map((name, i) => make("button", {
    type: "button",
    role: "radio",
    onclick: () => onchoose(i),
    onkeydown: (event) => {
      const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!by) return;
      event.preventDefault();
      let to = i;
      do to = (to + by + names.length) % names.length; while (buttons[to].disabled);
      onchoose(to);
      buttons[to].focus();
    },
  }, name));
  group.append(...buttons);
  group.choose = (chosen) => buttons.forEach((button, i) =>
    set(button, { "aria-checked": String(i === chosen), tabindex: i === Math.max(chosen, 0) ? "0" : "-1" }));
  return group;
}

// Follows the pointer of an event until it is released. Other pointers are ignored.
export function dragging(element, event, onmove, onend) {
  element.setPointerCapture(event.pointerId);
  const move = (next) => { if (next.pointerId === event.pointerId) onmove(next); };
  const end = (next) => {
    if (next.pointerId !== event.pointerId) return;
    element.removeEventListener("pointermove", move);
    for (const name of ["pointerup", "pointercancel"]) element.removeEventListener(name, end);
    onend();
  };
  element.addEventListener("pointermove", move);
  for (const name of ["pointerup", "pointercancel"]) element.addEventListener(name, end);
}

export const isFirst = (event) => event.isPrimary && event.button === 0;

// Fills a table. A cell that looks like a number is aligned to the right, in the font of numbers.
export function fillTable(table, rows, head) {
  const looksLikeNumber = (cell) => /^[-+−]?[\d.,]+([eE][-+]?\d+)?( ?(%|B|KiB|MiB|s|ms))?$|^\[.*\]$|^-$/.test(cell);
  const line = (cells, isHead) => make("tr", {}, ...cells.map((cell, i) => make(isHead || i === 0 ? "th" : "td", {
    class: looksLikeNumber(String(cell)) ? "n" : undefined,
    scope: isHead ? "col" : i === 0 ? "row" : undefined,
  }, String(cell))));
  const parts = head ? [make("thead", {}, line(head.map((name) => name || "\u2013"), true))] : [];
  table.replaceChildren(...table.querySelectorAll("caption"), ...parts, make("tbody", {}, ...rows.map((row) => line(row, false))));
  return table;
}

// Makes a text field that keeps what is typed until it is a number. `read(text)` returns {value} or {wrong}; the complaint
// is next to the field and describes it. `field.put(text)` shows a text unless the field has the focus.
export function numberField(attributes, read, onvalue) {
  const complaint = make("span", { class: "complaint", id: `${attributes.id}-complaint`, role: "alert" });
  const field = make("input", { class: "number", autocomplete: "off", spellcheck: "false", "aria-describedby": complaint.id, ...attributes });
  const wrapper = make("span", { class: "field" }, field, complaint);
  const take = () => {
    const { value, wrong } = read(field.value);
    set(field, { "aria-invalid": wrong ? "true" : false });
    setText(complaint, wrong ?? "");
    if (!wrong) onvalue(value);
  };
  field.addEventListener("change", take);
  wrapper.field = field;
  let latest = "";
  wrapper.put = (text) => {
    latest = text;
    if (field === document.activeElement || field.getAttribute("aria-invalid") === "true") return;
    if (field.value !== text) field.value = text;
  };
  wrapper.clear = () => {
    set(field, { "aria-invalid": false });
    setText(complaint, "");
    field.value = latest;
  };
  return wrapper;
}

let hiding = 0;
// Tells a screen reader a short text, and shows it. A problem stays; another text disappears after some seconds.
export function announce(words, isProblem = true) {
  const status = byId("status");
  setText(status, words);
  set(status, { class: isProblem ? "problem" : "note" });
  clearTimeout(hiding);
  if (!isProblem) hiding = setTimeout(() => setText(status, ""), 4000);
}
