// One hue from paper to ink, so that more is darker (lighter on a dark page) for every eye; or
// viridis, in which more differences can be told apart.

const STOPS = {
  light: ['ffffff', 'deebf7', 'c6dbef', '9ecae1', '6baed6', '4292c6', '2171b5', '08519c', '08306b'],
  dark: ['141b26', '152a44', '173c66', '1b5089', '2467ab', '3a82c9', '62a1de', '97c3ee', 'd6eaff'],
  viridis: ['440154', '472d7b', '3b528b', '2c728e', '21918c', '28ae80', '5ec962', 'addc30',
    'fde725'],
};
let palette = '';
export function usePalette(name) {
  palette = name;
}

// Of heads, one each; told apart by most colour-blind eyes.
export const HEADS = ['#1f77b4', '#e07b00', '#2c9f5b', '#c8385a', '#8a63c9', '#9a6b4f', '#d069b1',
  '#6f7c86'];

const parts = (hex) => [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16));

export function isDark() {
  return document.documentElement.dataset.theme === 'dark';
}

// The colour of a weight in [0, 1], as three numbers.
export function blues(weight, gamma = 1) {
  const stops = STOPS[palette === 'viridis' ? palette : isDark() ? 'dark' : 'light'];
  const power = Math.min(4, Math.max(0.1, gamma));
  const x = Math.min(1, Math.max(0, weight)) ** power * (stops.length - 1);
  const at = Math.min(stops.length - 2, Math.floor(x));
  const low = parts(stops[at]);
  const high = parts(stops[at + 1]);
  return low.map((value, i) => Math.round(value + (high[i] - value) * (x - at)));
}

export const css = (rgb) => `rgb(${rgb.join(', ')})`;

// Black or white, whichever can be read on it.
export function ink(rgb) {
  const light = 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
  return light > 140 ? '#0b1a2b' : '#ffffff';
}
