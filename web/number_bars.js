// Lists of numbers as bars or as strips of colour. Pointing at a number reads it out.

import { cellAt, el } from './dom.js';
import { css, diverging } from './colours.js';

export const SOFTER = 0.7;  // so that small numbers are visible

export const largestOf = (numbers) => numbers.reduce((a, x) => Math.max(a, Math.abs(x)), 0) || 1;

// Three significant decimals, fewer for large numbers.
export function digits(x) {
  const size = Math.abs(x);
  if (size !== 0 && (size < 0.001 || size >= 10000)) return x.toExponential(2);
  return x.toFixed(size < 10 ? 3 : size < 100 ? 2 : 1);
}

// The same for a column of numbers: all have the digits of the largest.
export function digitsOf(numbers) {
  const size = largestOf(numbers);
  if (size < 0.001 || size >= 10000) return (x) => x.toExponential(2);
  return (x) => x.toFixed(size < 10 ? 3 : size < 100 ? 2 : 1);
}

export function say(text) {
  document.getElementById('read-out').textContent = text;
}

// A canvas with one cell per number. The read-out puts `name` before the number.
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
    const [, i] = cellAt(event, canvas, { rows: 1, cols: numbers.length });
    say(`${name}, number ${i + 1} = ${digits(numbers[i])}`);
  });
  canvas.addEventListener('mouseleave', () => say(''));
  return canvas;
}

export function colours(numbers, { name, width, scale = largestOf(numbers), height = 16 }) {
  return strip(numbers, { name, width, height, paint(context, x, left, cell) {
    context.fillStyle = css(diverging(x / scale, SOFTER));
    context.fillRect(left, 0, cell, height);
  } });
}

export function bars(numbers, { name, width, scale = largestOf(numbers), height = 44 }) {
  const middle = height / 2;
  return strip(numbers, { name, width, height, paint(context, x, left, cell) {
    const length = Math.max(0.5, Math.abs(x / scale) * (middle - 1));
    context.fillStyle = css(diverging(x < 0 ? -0.75 : 0.75));
    context.fillRect(left, x < 0 ? middle : middle - length, Math.max(1, cell - 1), length);
  } });
}
