// All layers and heads as small maps. A click opens one of them in the alignment view.

import { el, pixels } from './dom.js';
import { blues } from './colours.js';
import { atEnd, diagonality, distance, entropy, heads, layers, matrix } from './attention.js';
import { set } from './state.js';

const SIZE = 92;

function thumbnail(m, gamma) {
  const canvas = pixels(m.weights, { ...m, colour: (w) => blues(w, gamma) });
  const scale = SIZE / Math.max(m.cols, m.rows);
  canvas.style.width = `${m.cols * scale}px`;
  canvas.style.height = `${m.rows * scale}px`;
  return canvas;
}

// The measures of a head, with their titles and formats.
const FIGURES = {
  entropy: { of: entropy, title: 'entropy', text: (x) => `${x.toFixed(2)} bits` },
  distance: { of: distance, title: 'distance', text: (x) => `${x.toFixed(1)} words from diagonal` },
  diagonality: { of: diagonality, title: 'diagonality', text: (x) => `diagonal ${x.toFixed(2)}` },
  end: { of: atEnd, title: 'share of </s>', text: (x) => `${Math.round(100 * x)} % at </s>` },
};

function measured(m) {
  const figures = Object.entries(FIGURES).filter(([name]) => name !== 'end'
    || m.colNames[m.cols - 1] === '</s>');
  return Object.fromEntries(figures.map(([name, { of }]) => [name, of(m)]));
}

function one({ m, layer, head, figures }, state) {
  const chosen = state.layer === layer && state.head === head;
  const lines = Object.entries(figures).map(([name, x]) => FIGURES[name].text(x));
  const data = Object.fromEntries(Object.entries(figures).map(([name, x]) =>
    [`data-${name}`, x.toFixed(4)]));
  return el('button', {
    type: 'button', class: chosen ? 'chosen' : null, 'data-layer': layer, 'data-head': head,
    ...data, onclick: () => set({ view: 'map', layer, head }),
    'aria-label': `layer ${layer + 1}, head ${head + 1}: ${lines.join(', ')}`,
  }, state.sort ? el('b', {}, `layer ${layer + 1}, head ${head + 1}`) : '',
  thumbnail(m, state.gamma), ...lines.map((line) => el('span', {}, line)));
}

function order(state) {
  const select = el('select', { id: 'sort', onchange: () => set({ sort: select.value }) },
    [['', 'by layer'], ...Object.entries(FIGURES).map(([name, { title }]) => [name, title])].map(
      ([value, title]) => el('option', { value, selected: value === state.sort }, title)));
  return el('p', { class: 'order' }, el('label', {}, 'Sorted ', select));
}

function grid(all, columns) {
  const node = el('div', { class: 'heads' });
  node.style.gridTemplateColumns = `auto repeat(${columns.length}, auto)`;
  node.append(el('span'), ...columns.map((head) => el('span', { class: 'name' },
    `head ${head + 1}`)), ...all);
  return node;
}

export const view = {
  id: 'heads',
  title: 'Heads',
  hint: 'Click a head to see its map in Alignment.',
  tools: ['kind', 'unit', 'gamma'],
  saves: ['csv', 'pharaoh', 'json', 'latex'],
  draw(stage, { sentence, state }) {
    const columns = heads(sentence, state.kind);
    const all = layers(sentence, state.kind).flatMap((layer) => columns.map((head) => {
      const m = matrix(sentence, { ...state, layer, head });
      return m && { m, layer, head, figures: measured(m) };
    }));
    const sorted = Object.hasOwn(FIGURES, state.sort);
    if (sorted) {
      const value = (head) => head.figures[state.sort] ?? 0;
      const list = all.filter((head) => head).sort((a, b) => value(b) - value(a));
      stage.append(order(state), el('div', { class: 'heads sorted' },
        list.map((head) => one(head, state))));
    } else {
      const cells = all.map((head) => (head ? one(head, { ...state, sort: '' }) : el('span')));
      const rows = layers(sentence, state.kind).flatMap((layer, i) => [
        el('span', { class: 'name' }, `layer ${layer + 1}`),
        ...cells.slice(i * columns.length, (i + 1) * columns.length)]);
      stage.append(order(state), grid(rows, columns));
    }
    stage.append(el('p', { class: 'note' }, 'Averages over all rows. Entropy: 0 bits if each row '
      + 'attends to one place, more if it spreads. Words from diagonal: the mean distance. '
      + 'Diagonal: the correlation of a row with the place it attends to, from −1 (backwards) over '
      + '0 (independent) to 1 (forwards). Click a head to enlarge it.'));
    return {};
  },
};
