// Shows a sequence of layers. The user chooses whose inputs are kept, and the other layers are recomputed.

const every = (n) => (layers) => Array.from({ length: layers }, (_, i) => i % n === 0);

function showChain() {
  state.keep ??= every(4)(16);
  const keep = state.keep, answer = ask("chain", Int32Array.from(keep.map(Number)), keep.length);
  $("layers").value = keep.length;
  $("nodes").replaceChildren(...keep.map((kept, i) => make("button", { type: "button", "aria-pressed": String(kept || i === 0), disabled: i === 0,
    "aria-label": `Keep the input of layer ${i}; it ran ${answer.runs[i] === 1 ? "once" : "twice"}`,
    onclick: () => { keep[i] = !keep[i]; show(); $("nodes").children[i].focus(); } }, String(i))));
  const most = answer.plain, [width, height, edge] = [960, 180, 2], step = (width - edge) / answer.moments.length;
  $("strip").replaceChildren(make("p", { class: "quiet" }, `${bytes(most)}: the peak when everything is kept`), drawn(width, height, "Bytes held, moment by moment",
    ...answer.moments.map((moment, i) => ["rect", { class: `bar ${moment.what}`, x: i * step, y: height - edge - moment.bytes / most * (height - 2 * edge),
      width: Math.max(1, step - 1), height: moment.bytes / most * (height - 2 * edge) }]),
    ["line", { class: "axis", x1: 0, x2: width - edge, y1: edge, y2: edge }]),
  make("p", { class: "quiet" }, "Forward, layer by layer; then, in the second colour, layers that are recomputed during backward."));
  $("strip-words").textContent = `${bytes(answer.peak)} at the peak, ${answer.again} ${answer.again === 1 ? "layer" : "layers"} ran again${answer.same ? "; the gradient has the same bits in all rows of the table" : ". The gradients differ: they should not"}.`;
  filled($("costs"), [["everything kept", bytes(answer.plain), 0], ["your choice", bytes(answer.peak), answer.again],
    [`the best segments within your bytes: ${answer.best.join(" + ")}`, bytes(answer.best_peak), answer.best_again],
    [`Revolve with ${answer.kept === 1 ? "1 snapshot" : `${answer.kept} snapshots`}, as many as you keep`, bytes(answer.revolve_peak), answer.revolve_again]],
  ["", "at the peak", "ran again"]);
}
