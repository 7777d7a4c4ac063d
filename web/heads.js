// Every layer and head at a glance; a click opens one in the alignment view.

import { el } from './dom.js';
import { blues } from './colours.js';
import { entropy, heads, layers, matrix } from './attention.js';
import { set } from './state.js';

const SIZE = 92;

function thumbnail(m, gamma) {
  const canvas = el('canvas', { width: m.cols, height: m.rows });
  const context = canvas.getContext('2d');
  const pixels = context.createImageData(m.cols, m.rows);
  m.weights.forEach((w, i) => pixels.data.set([...blues(w, gamma), 255], i * 4));
  context.putImageData(pixels, 0, 0);
  const scale = SIZE / Math.max(m.cols, m.rows);
  canvas.style.width = `${m.cols * scale}px`;
  canvas.style.height = `${m.rows * scale}px`;
  return canvas;
}

// How much of the weight the last column, </s>, takes: heads that have nothing to say look there.
function atEnd(m) {
  let sum = 0;
  for (let i = 0; i < m.rows; ++i) sum += m.at(i, m.cols - 1);
  return sum / m.rows;
}

function one(sentence, state, layer, head) {
  const m = matrix(sentence, { ...state, layer, head });
  if (!m) return el('span');
  const bits = entropy(m);
  const chosen = state.layer === layer && state.head === head;
  const end = m.colNames[m.cols - 1] === '</s>'
    ? [el('br'), `${Math.round(100 * atEnd(m))} % at </s>`] : [];
  return el('button', {
    type: 'button', class: chosen ? 'chosen' : null, 'data-layer': layer, 'data-head': head,
    'data-entropy': bits.toFixed(4), onclick: () => set({ view: 'map', layer, head }),
    'aria-label': `layer ${layer + 1}, head ${head + 1}, entropy ${bits.toFixed(2)} bits`,
  }, thumbnail(m, state.gamma), `${bits.toFixed(2)} bits`, ...end);
}

export const view = {
  id: 'heads',
  title: 'Heads',
  tools: ['kind', 'unit', 'gamma'],
  draw(stage, { sentence, state }) {
    const columns = heads(sentence, state.kind);
    const grid = el('div', { class: 'heads' });
    grid.style.gridTemplateColumns = `auto repeat(${columns.length}, auto)`;
    grid.append(el('span'), ...columns.map((head) => el('span', { class: 'name' },
      `head ${head + 1}`)));
    for (const layer of layers(sentence, state.kind))
      grid.append(el('span', { class: 'name' }, `layer ${layer + 1}`),
        ...columns.map((head) => one(sentence, state, layer, head)));
    stage.append(grid, el('p', { class: 'note' }, 'Entropy is the mean over rows: 0 bits where '
      + 'each row looks at one place, more where it spreads. Click a head to see it large.'));
    return {};
  },
};
