// Unpacks the engine and the recorded lessons, and calls the engine.
/* global tallyEngine, unpack */

let engine = null;

export const lessons = []; // {number, slug, events} of each lesson
export const hasEngine = () => engine !== null;

export async function unpackLessons() {
  lessons.push(...JSON.parse(new TextDecoder().decode(await unpack("recorded"))));
}

export async function startEngine() {
  const wasmBinary = await unpack("engine");
  return async () => { engine = await tallyEngine({ wasmBinary }); };
}

// Calls a function of web/engine.hpp. Arrays are copied to the engine's memory. Throws the engine's error.
export function ask(name, ...values) {
  const places = [];
  try {
    const given = values.map((value) => {
      if (typeof value === "number") return value;
      const place = engine._malloc(4 * value.length);
      places.push(place);
      (value instanceof Float32Array ? engine.HEAPF32 : engine.HEAP32).set(value, place / 4);
      return place;
    });
    const answer = JSON.parse(engine.UTF8ToString(engine[`_tally_${name}`](...given)));
    if (answer.error) throw new Error(answer.error);
    return answer;
  } finally {
    places.forEach((place) => engine._free(place));
  }
}

const eventsOf = (slug) => lessons.find((lesson) => lesson.slug === slug)?.events ?? [];

// Returns a tensor that a lesson shows.
export const tensor = (slug, name) => eventsOf(slug).find((event) => event.event === "tensor" && event.name === name);

export const courseToy = () => ({ x: tensor("full-batch", "x").values.flat(), w: tensor("full-batch", "w").values });
