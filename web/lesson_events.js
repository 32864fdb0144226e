// Shows what a lesson program printed: sentences, code, numbers, tables, pictures and checks.
import { fillTable, make, set } from "./elements.js";
import { makePlot } from "./plot.js";
import { text } from "./texts.js";

// A box that scrolls sideways is reached by Tab. A box that shows everything is not, so that Tab needs fewer steps.
const scrolls = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const isWide = target.scrollWidth > target.clientWidth + 1;
    set(target, isWide ? { tabindex: "0", role: "region", "aria-label": target.dataset.name }
      : { tabindex: false, role: false, "aria-label": false });
  }
});

function scrolling(name, child) {
  const box = make("div", { class: "sideways", "data-name": name }, child);
  scrolls.observe(box);
  return box;
}

const source = (event) => scrolling(text("lessons.code", { file: event.file, line: event.line }), make("pre", {}, event.text));

function tensor(event) {
  const isOneLine = !event.text.includes("\n"), words = `${event.name} =${isOneLine ? " " : "\n"}${event.text}`;
  return scrolling(text("lessons.numbers", { name: event.name }), make("pre", { class: isOneLine ? "tensor one-line" : "tensor" }, words));
}

const table = (event) => scrolling(text("lessons.table", { columns: event.columns.filter(Boolean).join(", ") }),
  fillTable(make("table"), event.text, event.columns.some(Boolean) ? event.columns : null));

const unescaped = (words) => words?.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
const wordsOf = (name, svg) => unescaped(new RegExp(`<${name}[^>]*>([^<]*)`).exec(svg)?.[1]);

let enlarged = null;

function enlarge(picture, title) {
  if (!enlarged) {
    enlarged = make("dialog", { class: "enlarged" });
    enlarged.addEventListener("click", () => enlarged.close());
    document.body.append(enlarged);
  }
  set(enlarged, { "aria-label": title });
  enlarged.replaceChildren(make("button", { type: "button" }, text("lessons.close")), picture.cloneNode());
  enlarged.showModal();
}

export const isEnlarged = () => Boolean(enlarged?.open);
export const shrink = () => enlarged?.close();

function picture(event) {
  const [, width, height] = /viewBox="0 0 ([\d.]+) ([\d.]+)"/.exec(event.svg) ?? [];
  const title = wordsOf("title", event.svg) ?? event.name, described = wordsOf("desc", event.svg) ?? "";
  const image = make("img", { width, height, alt: `${title}: ${described}`, src: `data:image/svg+xml,${encodeURIComponent(event.svg)}` });
  image.addEventListener("click", () => enlarge(image, title));
  const larger = make("button", { type: "button", class: "small", onclick: () => enlarge(image, title) }, text("lessons.enlarge"));
  return make("figure", { class: "lesson-picture" }, image, make("figcaption", {}, larger));
}

const check = (event) => make("p", { class: event.ok ? "quiet" : "wrong" },
  text(event.ok ? "lessons.holds" : "lessons.fails", { name: event.name }) + (event.exact ? text("lessons.exact") : ""));

function checks(view) {
  return make("details", { class: "checks quiet" }, make("summary", {}, text("lessons.checks", { n: view.events.length })),
    ...view.events.map(check));
}

// Returns the element of a view of lesson_model.js, except questions and the end of a lesson.
export function makeEvent(view) {
  const { kind, event } = view;
  switch (kind) {
    case "heading": return make("h3", { tabindex: "-1" }, event.text);
    case "note": return make("p", {}, event.text);
    case "source": return source(event);
    case "tensor": return tensor(event);
    case "table": return table(event);
    case "plot": return makePlot(event);
    case "failed": return check(event);
    case "checks": return checks(view);
    case "moved": return make("p", { class: "moved quiet" }, text("lessons.moved"));
    case "picture": return view.isFolded
      ? make("details", { class: "folding" }, make("summary", {}, text("lessons.pictureTells")), picture(event)) : picture(event);
    default: throw new Error(`no view ${kind}`);
  }
}

// Returns the elements of an event on a printed sheet.
export function printEvent(event) {
  switch (event.event) {
    case "sentence": return [make(event.role === "step" ? "h3" : "p", {}, event.text)];
    case "source": return [make("pre", {}, event.text)];
    case "tensor": return [make("pre", {}, `${event.name} =${event.text.includes("\n") ? "\n" : " "}${event.text}`)];
    case "table": return [fillTable(make("table"), event.text, event.columns.some(Boolean) ? event.columns : null)];
    case "plot": return [makePlot(event)];
    case "graph": return [picture(event)];
    default: return [];
  }
}
