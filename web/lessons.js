// Shows the recorded lessons as cards.
import { make } from "./elements.js";

export const liveOf = () => null;
export function build(section) { section.append(make("p", {}, "lessons")); }
export function update() {}
