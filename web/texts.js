// Contains all texts of the page, so that a translation is one file. {name} is a value; {n|row|rows} is "row" if n is 1.

const TEXTS = {
  parts: { toy: "Six rows", lessons: "Lessons", chain: "Checkpoints", noise: "Noise" },
  undo: "Undo",
  redo: "Redo",
  copyLink: "Copy link",
  copied: "The link is copied.",
  notCopied: "The browser does not allow copying. The link is in the address bar.",
  code: "Code",
  codeHelp: "A code such as S 222 n shows the same state in another copy of this page.",
  noCode: "“{text}” is not a code. A code is, for example, S 222 n.",
  reset: "Reset to the course's example",

  field: {
    empty: "Please type a number, for example 0.25 or 1/4.",
    notNumber: "{what}: “{text}” is not a number. The last valid number is still used.",
    tooLarge: "{what}: {text} is too large for 32 bits. The last valid number is still used.",
    notWhole: "{what} must be a whole number from {least} to {most}, not {text}. The last valid number is still used.",
  },

  start: {
    unread: "Part of the link ({names}) could not be read. The page shows the rest of the link.",
    noUnpacking: "This browser cannot unpack the page (DecompressionStream). Chrome 80, Firefox 113 and Safari 16.4 can.",
    damagedLessons: "This file is damaged: the checksum of the recorded lessons is wrong. Please download it again.",
    damagedEngine: "This file is damaged: the checksum of the engine is wrong. The recorded lessons can be read.",
    noWebAssembly: "This browser has no WebAssembly, so the engine cannot run. The recorded lessons can be read.",
    engineFailed: "The engine does not start in this browser: {why}. The recorded lessons can be read.",
    failed: "Something went wrong: {why}. Undo may help.",
  },

  toy: {
    title: "Does a cut batch give the same gradient?",
    rowsLabel: "Six rows. Pull a line to cut the batch.",
    weightsLabel: "How much each row counts",
    gradLabel: "w.grad. Dashed lines: all six rows at once",
    picture: "Six rows, their micro-batches, and the gradients that are added to w.grad",
    scaling: "Each loss",
    scalings: ["not scaled", "÷ number of micro-batches", "× its share of the rows"],
    scalingsShort: ["not scaled", "÷ N", "× share"],
    presets: "Cut",
    presetNames: ["6", "3 + 3", "2 + 2 + 2", "4 + 2", "six of 1"],
    play: "Play",
    pause: "Pause",
    back: "Back",
    step: "Step",
    time: "Micro-batches so far",
    timeValue: "{at} of {n}",
    gap: "Gap after row {row}",
    cutHere: "cut here: {sizes}",
    noCut: "no cut: {sizes}",
    microBatch: "Micro-batch {number}: {rows|row {first}|rows {first} to {last}}",
    mean: "mean of {n}",
    factors: ["", " ÷ {parts}", " × {n}/6"],
    together: "together {sum}",
    togetherRight: "together 1 ✓",
    togetherWrong: "together {sum}, should be 1",
    cell: "x{row}, number {number}",
    weight: "w, number {number}",
    wanted: "all six {value}",
    sayStart: "Cut the batch: pull a line between two rows, or choose a cut above.",
    sayGuess: "Where will w.grad end? Drag a dotted line, or press a factor. Then press Play.",
    sayReady: "Press Play. The micro-batches add their gradients to w.grad, one after the other.",
    sayPlaying: "{at} of {n} micro-batches have added their gradients to w.grad.",
    guess: "Your guess",
    guessValue: "{factor} times the full batch",
    guessNone: "no guess",
    right: "Right: you guessed {factor}.",
    wrong: "No: you guessed {factor}.",
    compare: "Compare with",
    compareNone: "nothing",
    rival: "other {value}",
    race: "Ten SGD steps: w moves from 0 to the solution ○",
    raceWords: "After ten steps, the distance to the solution is {a} with A ({nameA}) and {b} with B ({nameB}).",
    raceFar: "more than 100",
    memory: "Memory of a larger training with the same cut",
    memoryWords: "64 items, 4 layers: at most {peak} instead of {full}.",
    memoryFull: "64 items at once, 4 layers: at most {full}. A cut needs less.",
    bits: "the same bits: {bits}",
    checked: "Checked: your browser gets exactly the same bits as the C++ program.",
    notChecked: "Your browser's bits are {mine}; those of the C++ program are {theirs}. They should be the same.",
    own: "These numbers are your own. The link contains them, a code does not.",
    lesson: "Lesson {number} explains this",
  },
  // ---- checkpoints ----
  chain: {
  },
  // ---- noise ----
  noise: {
    title: "How noisy is the gradient of a micro-batch?",
    throw: "Throw",
    size: "b, items in a micro-batch",
    sizeShort: "b",
    count: "N, micro-batches in a throw",
    countShort: "N",
    seed: "Seed",
    sizeSlider: "b, as a power of two",
    countSlider: "N, as a power of two",
    sizeValue: "{n} {n|item|items}",
    countValue: "{n} {n|micro-batch|micro-batches}",
    empty: "Please type a whole number from {least} to {most}.",
    presets: "Try",
    near: "Zoom in ×10",
    restart: "Start again",
    of: "{count} × {size} items",
    ofOne: "{size} {size|item|items}",
    begin: "Throw a micro-batch: press Throw, click into the plane, or press Space.",
    hold: "Hold Throw: {needed} throws leave a dot in the second plot.",
    more: "Its gradient differs from the gradient of all 512 items. Hold Throw to throw many: {needed} throws leave a dot.",
    other: "This cloud left a dot in the second plot. Now choose b = {size} and throw again.",
    compare: "Now compare with a single batch: choose b = {size} and N = 1.",
    accumulate: "Now accumulate: b = {size} and N = 4 are {items} items as well. Where will the dot lie? Throw.",
    four: "Choose other b and N, and leave {left} more {left|dot|dots}. How do the dots lie?",
    places: "Your dots lie at few places. Choose a much smaller or larger b, and throw again.",
    law: "Four times as many items in a throw halve the distance, in one batch or accumulated: only b × N counts.",
    none: "Nothing is thrown with {what} yet.",
    once: "1 throw of {what}: its distance from the full gradient is {spread}.",
    measured: "{n} throws of {what}: the root mean square distance from the full gradient is {spread}.",
    outside: "{n} {n|lies|lie} outside the frame.",
    limit: "More throws are not possible here. Choose another b, N or seed.",
    pair: "Accumulating {count} micro-batches of {size} has the noise of one batch of {items}: {many} and {one}.",
    pairApart: "Accumulating {count} micro-batches of {size} should have the noise of one batch of {items}. {many} and {one} differ by " +
      "chance; more throws bring them together.",
    plane: "Plane of gradients: {n} {n|throw|throws} of {what}, and the gradient of all 512 items",
    horizontal: "gradient component 1",
    vertical: "gradient component 2",
    legendFull: "all 512 items",
    legendThrow: "a throw",
    legendMicro: "its micro-batches",
    legendSpread: "distance",
    legendOutside: "outside",
    plotTitle: "Distance against items in a throw",
    plotAcross: "b × N, items in a throw",
    plotUp: "distance",
    plot: "Distance against b × N, both axes logarithmic. {dots}",
    plotEmpty: "There is no dot yet.",
    plotDot: "{name}: {spread}",
    legendOne: "one batch",
    legendMany: "accumulated",
    showLaw: "Show the law",
    lawNone: "The law needs a dot: throw one setting at least 20 times.",
    lawHidden: "Do you see the law? Leave four dots, or press the button.",
    lawLine: "Line: distance = {spread} / √(b × N), slope −1/2.",
    lawSlope: "The dots have slope {slope}.",
    note: "A micro-batch is drawn with replacement from 512 items, so even batches of 512 scatter. A seed gives 512 items and their " +
      "draws, always the same.",
  },
  // ---- lessons ----
  lessons: {
  },
  // ---- the verdicts of the six rows ----
  verdict: {
    same: "✓ The same gradient, in every bit. Every row counts 1/6.",
    rounding: "The same gradient except for the last bits, because the numbers were added in another order.",
    chance: "Nearly the same, but by chance: the rows do not count equally, and these numbers do not show it.",
    factor: "✗ {factor} times too long: {factor} means were added, and nothing divided the sum by {factor}. Every row counts {factor}/6 instead of 1/6.",
    notScaled: "✗ Wrong direction: each row counts 1 over the rows of its own micro-batch. Every row should count 1/6.",
    meanOfMeans: "✗ Wrong direction: a row of a small micro-batch counts more than a row of a large one. Every row should count 1/6.",
    overflow: "The numbers are too large for 32 bits, so the gradient is infinite.",
  },
  mistake: {
    guessOne: "That is right if the losses are scaled. Here nothing divides the sum.",
    guessSize: "2 is the number of rows in a micro-batch. mean() has divided by it already.",
    guessRows: "6 is the number of rows. mean() has divided by the rows of a micro-batch already.",
    guessParts: "That is right if nothing is scaled. Here each loss is scaled.",
    guessTwice: "That would divide twice. mean() divides by the rows of a micro-batch, and ÷ N divides once more by the micro-batches.",
    guessLess: "That is too much.",
    guessMore: "That is too little.",
  },
};

function find(key) {
  const found = key.split(".").reduce((texts, name) => texts?.[name], TEXTS);
  if (found === undefined) throw new Error(`no text ${key}`);
  return found;
}

const filled = (text, values) => text
  .replace(/\{(\w+)\|([^|{}]*(?:\{\w+\}[^|{}]*)*)\|([^|{}]*(?:\{\w+\}[^|{}]*)*)\}/g, (_, name, one, more) => values[name] === 1 ? one : more)
  .replace(/\{(\w+)\}/g, (_, name) => {
    if (values[name] === undefined) throw new Error(`no value for {${name}} in: ${text}`);
    return values[name];
  });

// Returns the text of a key such as "toy.play", with its values filled in. A list of texts is returned as a list.
export function text(key, values = {}) {
  const found = find(key);
  return Array.isArray(found) ? found.map((one) => filled(one, values)) : filled(found, values);
}
