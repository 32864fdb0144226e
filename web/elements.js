// Makes elements of the page, reads numbers from fields, and formats numbers as text and as bits.
"use strict";

const $ = (id) => document.getElementById(id);

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

// Makes a group of buttons and marks exactly one button as chosen. The arrow keys change the choice.
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

// Returns the number in a field. If the text is not a valid number, writes a complaint and returns null.
function numberIn(field, complaint, what, holds) {
  const text = field.value.trim(), value = Number(text);
  const wrong = text === "" ? "is empty" : Number.isNaN(value) ? `is not a number: ${text}`
    : !Number.isFinite(Math.fround(value)) ? `is too large for 32 bits: ${text}` : holds(value);
  field.setAttribute("aria-invalid", String(Boolean(wrong)));
  complaint.textContent = wrong ? `${what} ${wrong}. The page still shows the previous value.` : "";
  return wrong ? null : value;
}
const anyNumber = () => "";
const wholeBetween = (least, most) => (value) => Number.isInteger(value) && value >= least && value <= most ? ""
  : `is not a whole number from ${least} to ${most}: ${value}`;

// Formats a 32-bit number with as few digits as possible, so that reading them gives the same number.
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
