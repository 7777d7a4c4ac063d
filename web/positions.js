// Positions: the vectors that are added to the embeddings, so that the model knows the order.

import { cellAt, el, pixels } from './dom.js';
import { blues, diverging } from './colours.js';
import { positions } from './service.js';
import { SOFTER, digits, largestOf, say } from './number_bars.js';
import { sides } from './words.js';

const AXES = 46;  // points for the numbers next to a picture and the gap between two pictures
const MOST = 4;  // the largest width of a number, in points
const FORMULAS = {
  interleaved: 'PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i + 1) = cos(pos / 10000^(2i/d))',
  half: 'PE(pos, i) = sin(pos / 10000^(2i/d)), PE(pos, d/2 + i) = cos(pos / 10000^(2i/d))',
  'half-m1': 'PE(pos, i) = sin(pos / 10000^(i/(d/2 − 1))), '
    + 'PE(pos, d/2 + i) = cos(pos / 10000^(i/(d/2 − 1)))',
};

function numbers(reply) {
  const bytes = Uint8Array.from(atob(reply.data), (c) => c.charCodeAt(0));
  return new Float32Array(bytes.buffer);  // little-endian, like all machines with browsers
}

// A picture of rows × cols numbers, one pixel each. `name(i, j)` is the name of a number.
function picture(values, { rows, cols, width, height, name, label, colour }) {
  const canvas = pixels(values, { rows, cols, colour },
    { class: 'picture', role: 'img', 'aria-label': label });
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  canvas.values = values;
  canvas.addEventListener('mousemove', (event) => {
    const [i, j] = cellAt(event, canvas, { rows, cols });
    say(`${name(i, j)} = ${digits(values[i * cols + j])}`);
  });
  canvas.addEventListener('mouseleave', () => say(''));
  return withAxes(canvas, { rows, cols, width, height });
}

// Numbers along one side, counted from 0 as in the formula, at least 30 points apart.
function numbersAlong(count, length, side) {
  const each = [1, 2, 4, 8, 16, 32, 64, 128].find((step) => step * length / count >= 30) ?? 256;
  const line = el('div', { class: `along ${side}`, 'aria-hidden': 'true' });
  for (let i = 0; i < count; i += each) {
    const mark = el('span', {}, String(i));
    mark.style[side === 'across' ? 'left' : 'top'] = `${(i + 0.5) / count * length}px`;
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

// The dimensions in groups that are drawn separately: sines and cosines alternate, and would look
// like noise in one picture.
function groupsOf({ kind, size }) {
  const all = Array.from({ length: size }, (_, k) => k);
  if (kind === 'learned') return [{ name: 'Dimensions', say: (k) => `dimension ${k}`, dims: all }];
  const isSine = kind === 'interleaved' ? (k) => k % 2 === 0 : (k) => k < size / 2;
  return [{ name: 'Sines', say: (i) => `i ${i}, sine`, dims: all.filter(isSine) },
    { name: 'Cosines', say: (i) => `i ${i}, cosine`, dims: all.filter((k) => !isSine(k)) }];
}

// The width of one number: groups are side by side if each number gets two points, otherwise one
// below the other.
function wideOf(groups, room) {
  const fits = (count) => Math.floor((room - count * AXES) / count / groups[0].dims.length);
  const beside = fits(groups.length);
  return Math.max(1, Math.min(MOST, beside >= 2 ? beside : fits(1)));
}

function waves(values, reply, { room, cell }) {
  const { rows, size } = reply;
  const groups = groupsOf(reply);
  const wide = wideOf(groups, room);
  const scale = largestOf(values);
  return groups.map(({ name, say: told, dims }) => {
    const part = new Float32Array(rows * dims.length);
    for (let i = 0; i < rows; ++i)
      dims.forEach((k, j) => { part[i * dims.length + j] = values[i * size + k]; });
    return el('div', {}, el('h2', {}, name), picture(part, {
      rows, cols: dims.length, width: dims.length * wide, height: rows * cell, label: name,
      colour: (x) => diverging(x / scale, SOFTER),
      name: (i, j) => `pos ${i}, ${told(j)}` }));
  });
}

// A recurrent model needs no positions. A Transformer without positions does not see the order.
const absent = (model) => (model.type === 'recurrent'
  ? 'This model adds no positions: it is recurrent. It reads one word after the other and so knows '
    + 'their order.'
  : 'This Transformer adds no positions. Self-attention does not depend on the order of the words: '
    + 'the encoder gives the same vectors for the same words in any order. Only the mask of the '
    + 'decoder still depends on the order.');

function fill(body, reply, { model, room }) {
  const { rows, size, kind } = reply;
  if (rows === 0) {
    body.append(el('p', { class: 'note' }, absent(model)));
    return;
  }
  const values = numbers(reply);
  const cell = Math.max(3, Math.min(7, Math.floor(Math.min(560, room - AXES) / rows)));
  const all = products(values, rows, size);
  const least = Math.min(...all);
  const span = Math.max(...all) - least || 1;
  const learned = kind === 'learned';
  body.append(
    el('p', { class: 'note' }, 'Added to the embedding of the piece at position pos, which counts '
      + `from 0: the first piece has pos = 0. ${learned ? 'These vectors were learned.'
        : `${FORMULAS[kind]}, with d = ${size}. Below: pos down, i across; the larger i, the `
          + 'slower the wave.'}`),
    el('div', { class: 'pair' }, waves(values, reply, { room, cell }),
      el('div', {}, el('h2', {}, 'Position · position'), picture(all, {
        rows, cols: rows, width: rows * cell, height: rows * cell, label: 'Products of positions',
        colour: (x) => blues((x - least) / span, 1.5),
        name: (i, j) => `pos ${i} · pos ${j}` }))),
    el('p', { class: 'note' }, `Position · position: the dot products of all pairs of positions. ${
      learned ? '' : 'A product depends only on the distance of the two: it is largest for a '
      + 'position with itself, and falls off in waves as the distance grows.'}`));
}

export const view = {
  id: 'positions',
  bare: true,
  title: 'Positions',
  hint: 'Point at a picture to read its numbers.',
  tools: [],
  asks: true,
  saves: [],
  draw(stage, { state, model }) {
    const body = el('div', { class: 'positions' }, sides(state));
    stage.append(body);
    positions(model, state.side, 64).then((reply) => {
      fill(body, reply, { model, room: stage.clientWidth - 40 });
      body.dataset.shown = reply.kind;
    }, (error) => body.append(el('p', { class: 'note' }, error.message)));
    return {};
  },
};
