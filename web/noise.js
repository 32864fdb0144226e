// Shows the noise of gradients.
import { make } from "./elements.js";

export function build(section) { section.append(make("p", {}, "noise")); }
export function update() {}
