// Positions: what is added to each word so that the model knows where it stands.

import { el, pixels } from './dom.js';
import { blues, diverging } from './colours.js';
import { positions } from './service.js';
import { SOFTER, digits, largestOf, say } from './strips.js';
import { sides } from './words.js';

const AXES = 60;  // points for numbers beside a picture, and what is between two

function numbers(reply) {
  const bytes = Uint8Array.from(atob(reply.data), (c) => c.charCodeAt(0));
  return new Float32Array(bytes.buffer);  // little-endian, as every browser's machine
}

// A picture of rows × cols numbers, pixel by pixel; `name(i, j)` says what a number is.
function picture(values, { rows, cols, width, height, name, label, colour }) {
  const canvas = pixels(values, { rows, cols, colour },
    { class: 'picture', role: 'img', 'aria-label': label });
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  canvas.values = values;
  canvas.addEventListener('mousemove', (event) => {
    const box = canvas.getBoundingClientRect();
    const j = Math.floor((event.clientX - box.left) / box.width * cols);
    const i = Math.floor((event.clientY - box.top) / box.height * rows);
    if (i >= 0 && i < rows && j >= 0 && j < cols)
      say(`${name(i, j)} = ${digits(values[i * cols + j])}`);
  });
  canvas.addEventListener('mouseleave', () => say(''));
  return withAxes(canvas, { rows, cols, width, height });
}

// Numbers along one side, counted from 1, at least 30 points apart.
function numbersAlong(count, length, side) {
  const each = [1, 2, 4, 8, 16, 32, 64, 128].find((step) => step * length / count >= 30) ?? 256;
  const line = el('div', { class: `along ${side}`, 'aria-hidden': 'true' });
  for (let i = 1; i <= count; i = i === 1 && each > 1 ? each : i + each) {
    const mark = el('span', {}, String(i));
    mark.style[side === 'across' ? 'left' : 'top'] = `${(i - 0.5) / count * length}px`;
    line.append(mark);
  }
  return line;
}

function withAxes(canvas, { rows, cols, width, height }) {
  return el('div', { class: 'axes' }, el('span'), numbersAlong(cols, width, 'across'),
    numbersAlong(rows, height, 'down'), canvas);
}

function products(values, rows, size) {
  const all = new Float32Array(rows * rows);
  for (let i = 0; i < rows; ++i)
    for (let j = 0; j < rows; ++j)
      for (let k = 0; k < size; ++k)
        all[i * rows + j] += values[i * size + k] * values[j * size + k];
  return all;
}

function fill(body, reply, room) {
  const { rows, size, kind } = reply;
  if (rows === 0) {
    body.append(el('p', { class: 'note' }, 'This model adds no positions: it reads one word after '
      + 'the other, and so knows their order.'));
    return;
  }
  const values = numbers(reply);
  const cell = Math.max(3, Math.min(9, Math.floor(Math.min(560, room - AXES) / rows)));
  const wide = Math.max(1, Math.min(6, Math.floor((room - rows * cell - 2 * AXES) / size)));
  const scale = largestOf(values);
  const all = products(values, rows, size);
  const least = Math.min(...all);
  const span = Math.max(...all) - least || 1;
  const learned = kind === 'learned';
  const title = `Position (down) × dimension (across), ${learned ? 'learned'
    : 'sines and cosines'}`;
  body.append(el('div', { class: 'pair' },
    el('div', {}, el('h2', {}, title), picture(values, {
      rows, cols: size, width: size * wide, height: rows * cell, label: 'Positions',
      colour: (x) => diverging(x / scale, SOFTER),
      name: (i, j) => `position ${i + 1}, dimension ${j + 1}` })),
    el('div', {}, el('h2', {}, 'Position · position'), picture(all, {
      rows, cols: rows, width: rows * cell, height: rows * cell, label: 'Products of positions',
      colour: (x) => blues((x - least) / span, 1.5),
      name: (i, j) => `position ${i + 1} · position ${j + 1}` }))),
  el('p', { class: 'note' }, learned
    ? 'These were learned like words. On the right: the products of all pairs of positions.'
    : 'The farther to the right, the slower a wave. On the right: the product of two positions '
      + 'depends on how far they are apart, and is largest for neighbours.'));
}

export const view = {
  id: 'positions',
  bare: true,
  title: 'Positions',
  tools: [],
  asks: true,
  saves: [],
  draw(stage, { state, model }) {
    const body = el('div', { class: 'positions' }, sides(state));
    stage.append(body);
    positions(model, state.side, 64).then((reply) => {
      fill(body, reply, stage.clientWidth - 40);
      body.dataset.shown = reply.kind;
    }, (error) => body.append(el('p', { class: 'note' }, error.message)));
    return {};
  },
};
