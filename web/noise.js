// Shows the gradients of small batches as a cloud of points.

function showNoise() {
  const draws = 200, answer = ask("noise", state.seed, state.size, draws);
  $("size").value = state.size;
  $("seed").value = state.seed;
  $("halve").disabled = state.size === 1;
  $("double").disabled = state.size > 256;
  const full = answer.full.map(valueOf), points = answer.points.map((point) => point.map(valueOf));
  const reach = 8, side = 480, place = (x, middle) => side / 2 + (x - middle) / reach * side / 2;  // both axes have the same scale, and the full gradient is in the middle
  $("cloud").replaceChildren(drawn(side, side, `Gradients of ${draws} micro-batches of ${state.size} items`,
    ["rect", { class: "axis", x: 0.5, y: 0.5, width: side - 1, height: side - 1 }],
    ...points.map(([a, b]) => ["circle", { class: "point", cx: place(a, full[0]), cy: side - place(b, full[1]), r: 4 }]),
    ["circle", { class: "ring", cx: side / 2, cy: side / 2, r: 9 }]));
  const spread = Math.sqrt(points.reduce((sum, [a, b]) => sum + (a - full[0]) ** 2 + (b - full[1]) ** 2, 0) / draws);
  $("cloud-words").textContent = `Micro-batches of ${state.size}: the root mean square distance from the full gradient ${texts(answer.full)} is ${spread.toFixed(3)}. ` +
    "Four times as many items: about half as far.";
}
