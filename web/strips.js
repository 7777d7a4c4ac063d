// Lists of numbers as bars or as strips of colour; pointing at one reads it out.

import { el } from './dom.js';
import { isDark } from './colours.js';

const ENDS = {  // negative, nothing, positive
  light: [[178, 24, 43], [247, 247, 247], [33, 102, 172]],
  dark: [[240, 120, 110], [30, 39, 52], [98, 161, 222]],
};

// Red below zero, blue above; `x` in [−1, 1].
export function twoSided(x) {
  const [low, middle, high] = ENDS[isDark() ? 'dark' : 'light'];
  const end = x < 0 ? low : high;
  const share = Math.min(1, Math.abs(x)) ** 0.7;
  return middle.map((value, i) => Math.round(value + (end[i] - value) * share));
}

export const largestOf = (numbers) => numbers.reduce((a, x) => Math.max(a, Math.abs(x)), 0) || 1;

// Three digits that count, without a tail of zeros for large ones.
export function digits(x) {
  const size = Math.abs(x);
  if (size !== 0 && (size < 0.001 || size >= 10000)) return x.toExponential(2);
  return x.toFixed(size < 10 ? 3 : size < 100 ? 2 : 1);
}

export function say(text) {
  document.getElementById('read-out').textContent = text;
}

// A canvas of one cell per number. `name` stands before the number that is read out.
function strip(numbers, { name, width, height, paint }) {
  const cell = Math.max(1, Math.min(12, Math.floor(width / numbers.length)));
  const fine = window.devicePixelRatio || 1;
  const shown = { width: cell * numbers.length, height };
  const canvas = el('canvas', { width: shown.width * fine, height: height * fine, class: 'strip',
    role: 'img', 'aria-label': `${name}: ${numbers.length} numbers` });
  canvas.style.width = `${shown.width}px`;
  canvas.style.height = `${height}px`;
  canvas.values = numbers;
  const context = canvas.getContext('2d');
  context.scale(fine, fine);
  numbers.forEach((x, i) => paint(context, x, i * cell, cell));
  canvas.addEventListener('mousemove', (event) => {
    const i = Math.floor((event.clientX - canvas.getBoundingClientRect().left) / cell);
    if (i >= 0 && i < numbers.length) say(`${name}, number ${i + 1} = ${digits(numbers[i])}`);
  });
  canvas.addEventListener('mouseleave', () => say(''));
  return canvas;
}

const css = (rgb) => `rgb(${rgb.join(', ')})`;

export function colours(numbers, { name, width, scale = largestOf(numbers), height = 16 }) {
  return strip(numbers, { name, width, height, paint(context, x, left, cell) {
    context.fillStyle = css(twoSided(x / scale));
    context.fillRect(left, 0, cell, height);
  } });
}

export function bars(numbers, { name, width, scale = largestOf(numbers), height = 44 }) {
  const middle = height / 2;
  return strip(numbers, { name, width, height, paint(context, x, left, cell) {
    const length = Math.max(0.5, Math.abs(x / scale) * (middle - 1));
    context.fillStyle = css(twoSided(x < 0 ? -0.8 : 0.8));
    context.fillRect(left, x < 0 ? middle : middle - length, Math.max(1, cell - 1), length);
  } });
}
