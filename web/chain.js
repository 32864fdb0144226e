// Shows which layers are recomputed.
import { make } from "./elements.js";

export function build(section) { section.append(make("p", {}, "chain")); }
export function update() {}
