// One hue from paper to ink: a larger weight is darker (on a dark page lighter), also for
// colour-blind readers. Alternatively viridis, in which more differences are visible.

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

// From less (blue) through zero to more (red). Colour-blind readers can distinguish these two.
const LESS_OR_MORE = {
  light: ['053061', '2166ac', '4393c3', '92c5de', 'ffffff', 'f4a582', 'd6604d', 'b2182b', '67001f'],
  dark: ['b7dcff', '6fb1ea', '3a82c9', '1b4a7d', '141b26', '7a2c23', 'c2483a', 'ee8368', 'ffd0bd'],
};

// One colour per head: the palette of Okabe and Ito, which colour-blind readers can distinguish.
// Purple and red replace its black and yellow, which are invisible on dark and light pages.
export const HEADS = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#aa66ee',
  '#ee2244'];

const parts = (hex) => [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16));

export function isDark() {
  return document.documentElement.dataset.theme === 'dark';
}

function between(stops, x) {
  const at = Math.min(stops.length - 2, Math.floor(x));
  const low = parts(stops[at]);
  const high = parts(stops[at + 1]);
  return low.map((value, i) => Math.round(value + (high[i] - value) * (x - at)));
}

const within = (low, value, high) => Math.min(high, Math.max(low, value));

// The colour of a weight in [0, 1], as three numbers.
export function blues(weight, gamma = 1) {
  const stops = STOPS[palette === 'viridis' ? palette : isDark() ? 'dark' : 'light'];
  return between(stops, within(0, weight, 1) ** within(0.1, gamma, 4) * (stops.length - 1));
}

// The colour of a difference in [−1, 1].
export function diverging(difference, gamma = 1) {
  const stops = LESS_OR_MORE[isDark() ? 'dark' : 'light'];
  const size = within(0, Math.abs(difference), 1) ** within(0.1, gamma, 4);
  return between(stops, (Math.sign(difference) * size + 1) / 2 * (stops.length - 1));
}

export const css = (rgb) => `rgb(${rgb.join(', ')})`;

// A dark or a light text colour, the one that is readable on this background.
export function ink(rgb) {
  const light = 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
  return light > 140 ? '#0b1a2b' : '#ffffff';
}
