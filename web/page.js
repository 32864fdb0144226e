// Calls the engine and shows the engine's answers. The page itself only compares gradients and computes the mean distance of points.

const PARTS = ["toy", "lessons", "chain", "noise"];
let engine = null;    // the WebAssembly module; null until it runs
let recorded = [];    // the lessons' events; empty until unpacked

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

// ---- the state, which the link contains -------------------------------------------------------------------------

const state = { part: "toy", toy: null, lesson: 1, step: 1, present: 0, keep: null, size: 8, seed: 0 };

function tensor(slug, name) {
  const lesson = recorded.find((one) => one.slug === slug);
  return lesson && lesson.events.find((event) => event.event === "tensor" && event.name === name);
}
function courseToy() {
  return { x: tensor("full-batch", "x").values.flat(), w: tensor("full-batch", "w").values, cuts: [2, 2, 2], divide: 0, at: 3 };
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

// Returns the state that the hash of a link describes. If a field is wrong, throws the name of the field.
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
  const named = fields.has("lesson");  // a link without a lesson keeps the present lesson
  next.step = whole("step", 1, 99, named ? 1 : next.step);
  next.present = whole("present", 0, 1, named ? 0 : next.present);
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
    tell(`The link's "${error.message}" cannot be read; the page shows its start.`);
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

// ---- the controls ----------------------------------------------------------------------------------------------

function listen() {
  addEventListener("hashchange", () => {
    const left = state.part;
    tell("");
    follow();
    if (state.part !== left) scrollTo(0, 0);
  });
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
  $("trouble").hidden = true;  // hides the warning, because the browser has read the whole file
  if (typeof DecompressionStream === "undefined") return tell("This browser cannot unpack the page (DecompressionStream). Chrome 80, Firefox 113 or Safari 16.4 can.");
  try {
    recorded = JSON.parse(new TextDecoder().decode(await unpacked("recorded")));
  } catch {
    return tell("This file is damaged: the checksum of the recorded lessons is wrong. Please copy the file again.");
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
      tell("This file is damaged: the checksum of the engine is wrong. The recorded lessons can be read.");
      state.part = "lessons";
    }
  }
  listen();
  if (!engine && !location.hash) show();
  else follow();
  document.documentElement.dataset.ready = "yes";
}

begin();
