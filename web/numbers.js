// Reads numbers as people write them, and formats 32-bit numbers as text and as bits. Needs no browser.

const FRACTION = /^([^/]+)\/([^/]+)$/;

// Returns the number that a text means, such as "0.25", "1/4", "0,25", "−3" or "25 %". Returns NaN for another text.
export function parseNumber(text) {
  const plain = text.trim().replace(/[\u2212\u2013]/g, "-").replace(/\u00a0|\u2009|\s/g, "");
  const fraction = FRACTION.exec(plain);
  if (fraction) return parseNumber(fraction[1]) / parseNumber(fraction[2]);
  if (plain.endsWith("%")) return parseNumber(plain.slice(0, -1)) / 100;
  const power = /^([^^]+)\^([^^]+)$/.exec(plain);
  if (power) return parseNumber(power[1]) ** parseNumber(power[2]);
  return /^[-+]?(\d+([.,]\d*)?|[.,]\d+)(e[-+]?\d+)?$/i.test(plain) ? Number(plain.replace(",", ".")) : NaN;
}

export const fits32 = (value) => Number.isFinite(Math.fround(value));

// Formats a 32-bit number with as few digits as possible, so that reading them gives the same number.
export function shortest(value) {
  for (let digits = 1; digits < 9; ++digits)
    if (Math.fround(Number(value.toPrecision(digits))) === Math.fround(value)) return String(Number(value.toPrecision(digits)));
  return String(value);
}

// Formats an answer: a recurring fraction such as 0.3333333333 as "1/3 (0.3333)", another number as it is.
export function readable(text) {
  const value = Number(text);
  if (!/\.\d{8,}$/.test(text) || Number.isNaN(value)) return text;
  for (let below = 3; below <= 99; ++below) {
    const above = Math.round(value * below);
    if (above !== 0 && Math.abs(above / below - value) < 1e-9) return `${above}/${below} (${Number(value.toPrecision(4))})`;
  }
  return String(Number(value.toPrecision(6)));
}

export function bitsOf(value) {
  const view = new DataView(new ArrayBuffer(4));
  view.setFloat32(0, value);
  return view.getUint32(0).toString(16).padStart(8, "0");
}

// Returns the value of a number of the engine, {text, bits}.
export function valueOf(number) {
  const view = new DataView(new ArrayBuffer(4));
  view.setUint32(0, parseInt(number.bits, 16));
  return view.getFloat32(0);
}

export const formatBytes = (bytes) => bytes < 1024 ? `${bytes} B` : `${(bytes / 1024).toFixed(1)} KiB`;
export const joinBits = (numbers) => numbers.map((number) => number.bits).join(" ");
