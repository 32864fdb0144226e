// Presents a lesson to a class by keys: a slide clicker, digits for answers, and letters for the rest.
import { make, set } from "./elements.js";
import { isEnlarged, shrink } from "./lesson_events.js";
import { text } from "./texts.js";

// Each line has the keys, their names, and the text of what they do. The text is the name in the catalogue under lessons.keys.
const KEYS = [
  { keys: ["PageDown", "ArrowRight", " "], act: "forward" },
  { keys: ["PageUp", "ArrowLeft"], act: "back" },
  { keys: [..."0123456789-."], act: "choose" },
  { keys: ["h"], act: "hint" },
  { keys: ["g"], act: "picture" },
  { keys: ["l"], act: "live" },
  { keys: ["c"], act: "checks" },
  { keys: ["v"], act: "showVotes" },
  { keys: ["b"], act: "black" },
  { keys: ["?"], act: "settings" },
  { keys: ["Escape"], act: "leave" },
];

// While the live picture is shown, these acts lead back to the lesson, and a key of another act does nothing.
const BACK_TO_LESSON = ["forward", "back", "live", "leave"];

// Makes the presenter. `hands` has a function for each line of KEYS except black and settings, and also setVotes(on), begin(),
// isPresenting() and isPicture(). A function receives the key. The presenter has the elements `settings` and `black`, and update(votes).
export function makePresenter(hands) {
  const votes = make("input", { type: "checkbox", onchange: () => hands.setVotes(votes.checked) });
  const close = make("button", { type: "button", class: "key", onclick: () => settings.close() }, text("lessons.close"));
  const settings = make("dialog", { class: "settings", "aria-label": text("lessons.settings") },
    make("h3", {}, text("lessons.settings")),
    make("label", {}, votes, text("lessons.voting")),
    make("p", {}, make("button", { type: "button", onclick: () => { settings.close(); hands.begin(); } }, text("lessons.forget")), " ",
      make("button", { type: "button", onclick: () => { settings.close(); hands.leave(); } }, text("lessons.leave"))),
    make("table", { class: "keys" }, make("tbody", {}, ...KEYS.map(({ act }) => make("tr", {},
      make("th", { scope: "row" }, text(`lessons.keyNames.${act}`)), make("td", {}, text(`lessons.keys.${act}`)))))), close);
  const black = make("div", { class: "black", hidden: true, onclick: () => set(black, { hidden: true }) },
    make("span", { class: "hidden-words" }, text("lessons.black")));

  const own = {
    black: () => {
      document.activeElement?.blur(); // else the key that ends the black screen would press a control
      set(black, { hidden: false });
    },
    settings: () => settings.showModal(),
  };
  const isTyping = (target) => target.matches("input:not([type=checkbox]), textarea, select");
  const presses = (target) => target.matches("button, a, summary, input");

  function onkey(event) {
    if (!hands.isPresenting() || event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || settings.open) return;
    const { act } = KEYS.find(({ keys }) => keys.includes(event.key)) ?? {};
    if (!black.hidden) {
      event.preventDefault();
      set(black, { hidden: true });
      return;
    }
    if (isEnlarged()) {
      if (act === "picture" || act === "forward" || act === "back") {
        event.preventDefault();
        shrink();
      }
      return;
    }
    // A clicker goes on even if a field has the focus; other keys are typed.
    if (isTyping(event.target) && !["PageDown", "PageUp", "Escape"].includes(event.key)) return;
    if (event.key === " " && presses(event.target)) return;
    if (!act || (hands.isPicture() && !own[act] && !BACK_TO_LESSON.includes(act))) return;
    const wasTaken = (own[act] ?? hands[hands.isPicture() ? "live" : act])(event.key);
    if (wasTaken !== false) event.preventDefault();
  }
  addEventListener("keydown", onkey);

  const update = (isVoting) => { votes.checked = isVoting; };
  return { settings, black, update };
}
