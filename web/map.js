// Alignment: target words down, source words across, the darker the more the model looked there.

import { svg, widthOf, clear, el, pixels } from './dom.js';
import { blues, css, ink } from './colours.js';
import { largest, rowSum } from './attention.js';
import { errorRate, links } from './gold.js';
import { windowed } from './overview.js';
import { pin, point } from './state.js';

const MOST = 80 * 80;  // cells that are elements of their own; more become one picture
const SLANT = Math.SQRT1_2;

const isEnd = (name) => name === '</s>' || name === '<s>';

// Where everything stands, for a drawing that should not be wider than `room`.
function measure(m, room, largestCell, sums) {
  const left = Math.min(180, Math.max(...m.rowNames.map((name) => widthOf(name)))) + 14;
  const longest = Math.min(200, Math.max(...m.colNames.map((name) => widthOf(name))));
  const top = longest * SLANT + 26;
  const right = Math.max(sums ? 52 : 8, widthOf(m.colNames[m.cols - 1]) * SLANT + 8);
  const fits = Math.floor((room - left - right) / m.cols);
  const cell = Math.max(m.cols > 80 ? 8 : 14, Math.min(largestCell, fits));
  return {
    left, top, cell, width: left + m.cols * cell + right, height: top + m.rows * cell + 8,
  };
}

function picture(m, place, { gamma, paint }) {
  const canvas = pixels(m.weights, { ...m, colour: (w) => paint(w, gamma) });
  return svg('image', {
    href: canvas.toDataURL(), x: place.left, y: place.top, width: m.cols * place.cell,
    height: m.rows * place.cell, preserveAspectRatio: 'none', 'image-rendering': 'pixelated',
  });
}

function cells(m, place, how) {
  if (m.rows * m.cols > MOST) return picture(m, place, how);
  const { left, top, cell } = place;
  const group = svg('g', { class: 'cells' });
  for (let i = 0; i < m.rows; ++i)
    for (let j = 0; j < m.cols; ++j) {
      const weight = m.at(i, j);
      const colour = how.paint(weight, how.gamma);
      const label = `${m.rowNames[i]} → ${m.colNames[j]} = ${weight.toFixed(3)}`;
      group.append(svg('rect', {
        x: left + j * cell, y: top + i * cell, width: cell, height: cell, fill: css(colour),
        class: 'grid', role: 'img', 'aria-label': label, 'data-weight': weight.toFixed(4),
      }));
      if (cell >= 28 && Math.abs(weight) >= 0.01)
        group.append(number(place, i, j, weight, ink(colour)));
    }
  return group;
}

function number({ left, top, cell }, i, j, weight, colour) {
  const size = Math.abs(weight);
  const text = (weight < 0 ? '−' : '') + (size > 0.995 ? '1' : size.toFixed(2).slice(1));
  const node = svg('text', {
    x: left + (j + 0.5) * cell, y: top + (i + 0.5) * cell + 4, 'text-anchor': 'middle',
    'pointer-events': 'none',
  }, text);
  node.style.fill = colour;
  node.style.fontSize = cell >= 40 ? '13px' : '11px';
  return node;
}

function names(m, { left, top, cell }, numbers) {
  const group = svg('g', { class: 'names' });
  const each = Math.max(1, Math.ceil(12 / cell));  // small cells: not every name
  m.colNames.forEach((name, j) => {
    if (j % each !== 0) return;
    const x = left + (j + 0.5) * cell;
    group.append(svg('text', {
      x, y: top - 8, transform: `rotate(-45 ${x} ${top - 8})`, 'data-col': j,
      class: isEnd(name) ? 'end' : null,
    }, name));
  });
  m.rowNames.forEach((name, i) => {
    if (i % each !== 0) return;
    const y = top + (i + 0.5) * cell + 4;
    group.append(svg('text', {
      x: left - 8, y, 'text-anchor': 'end', 'data-row': i, class: isEnd(name) ? 'end' : null,
    }, name));
    if (!numbers) return;
    group.append(svg('text', {
      x: left + m.cols * cell + 8, y, class: 'soft sum', 'data-sum': rowSum(m, i).toFixed(4),
    }, `Σ ${rowSum(m, i).toFixed(2)}`));
  });
  return group;
}

function dots(m, { left, top, cell }) {
  const group = svg('g', { class: 'dots', 'pointer-events': 'none' });
  for (let i = 0; i < m.rows; ++i) {
    const j = largest(m, i);
    group.append(svg('circle', {
      cx: left + (j + 1) * cell - cell / 6, cy: top + i * cell + cell / 6,
      r: Math.max(1.5, cell / 14), fill: '#ff922b',
    }));
  }
  return group;
}

// The separators before </s>.
function ends(m, { left, top, cell }) {
  const group = svg('g', { 'pointer-events': 'none' });
  const line = (x1, y1, x2, y2) => group.append(
    svg('line', { x1, y1, x2, y2, stroke: 'currentColor', 'stroke-opacity': 0.55 }));
  const right = left + m.cols * cell;
  const bottom = top + m.rows * cell;
  if (m.colNames[m.cols - 1] === '</s>') line(right - cell, top, right - cell, bottom);
  if (m.rowNames[m.rows - 1] === '</s>') line(left, bottom - cell, right, bottom - cell);
  return group;
}

// Hollow squares where gold has links; those that are only possible dashed.
function squares(m, { left, top, cell }, gold) {
  const group = svg('g', { class: 'gold', 'pointer-events': 'none' });
  for (const link of gold.possible) {
    const [j, i] = link.split('-').map(Number);
    if (i < m.rows && j < m.cols) group.append(svg('rect', {
      x: left + j * cell + 3, y: top + i * cell + 3, width: cell - 6, height: cell - 6,
      fill: 'none', stroke: '#d9480f', 'stroke-width': 2, 'data-link': link,
      'stroke-dasharray': gold.sure.has(link) ? null : '3 3',
    }));
  }
  return group;
}

// How large the cells of several maps beside each other can be, all alike.
export function cellOf(maps, room, largestCell) {
  const cols = maps.reduce((sum, m) => sum + m.cols, 0);
  const beside = maps.reduce((sum, m) => {
    const { width, cell } = measure(m, room, largestCell, false);
    return sum + width - m.cols * cell;
  }, 0);
  return Math.max(14, Math.min(largestCell, Math.floor((room - beside) / cols)));
}

// The drawing, with a method `mark(row, col)` for the cross-hair. `paint` gives a weight its
// colour; `tell` is called with what is pointed at, `choose` with what is clicked.
export function heatmap(m, { room, gamma, cell = 46, live = true, paint = blues, sums = live,
  dotted = true, gold = null, tell = live ? point : null, choose = null }) {
  const place = measure(m, room, cell, sums);
  const { left, top } = place;
  const hair = svg('g', { class: 'cross-hair' });
  const drawing = svg('svg', {
    width: place.width, height: place.height, viewBox: `0 0 ${place.width} ${place.height}`,
    role: 'figure', 'aria-label': 'Attention weights', class: `heat-map${choose ? ' choose' : ''}`,
  }, cells(m, place, { gamma, paint }), ends(m, place), names(m, place, sums),
  dotted ? dots(m, place) : null, gold && squares(m, place, gold), hair);
  drawing.mark = (row, col) => {
    clear(hair);
    if (row !== null && row < m.rows) hair.append(svg('rect', {
      x: left, y: top + row * place.cell, width: m.cols * place.cell, height: place.cell }));
    if (col !== null && col < m.cols) hair.append(svg('rect', {
      x: left + col * place.cell, y: top, width: place.cell, height: m.rows * place.cell }));
    for (const text of drawing.querySelectorAll('.names [data-col], .names [data-row]'))
      text.classList.toggle('on', Number(text.dataset.col ?? -1) === col
        || Number(text.dataset.row ?? -1) === row);
  };
  const at = (event) => {
    const box = drawing.getBoundingClientRect();
    const col = Math.floor((event.clientX - box.left - left) / place.cell);
    const row = Math.floor((event.clientY - box.top - top) / place.cell);
    return [row >= 0 && row < m.rows ? row : null, col >= 0 && col < m.cols ? col : null];
  };
  if (tell) {
    drawing.addEventListener('mousemove', (event) => tell(...at(event)));
    drawing.addEventListener('mouseleave', () => tell(null, null));
  }
  if (choose)
    drawing.addEventListener('click', (event) => {
      const [row, col] = at(event);
      if (row !== null && col !== null) choose(row, col);
    });
  return drawing;
}

// Gold links join words of both sides: in pieces, or within one side, they mean nothing.
function goldOf(sentence, state) {
  if (!state.gold.trim() || state.unit !== 'words' || state.kind !== 'cross') return null;
  return links(state.gold);
}

function judged(sentence, state, gold) {
  if (gold.bad.length > 0)
    return el('p', { class: 'note' }, 'Gold links look like 0-0 1-2 3?4; not understood: ',
      gold.bad.slice(0, 5).join(' '));
  const rate = errorRate(sentence, state, gold);
  return el('p', { class: 'note', 'data-aer': rate.toFixed(4) },
    `Alignment error rate ${(100 * rate).toFixed(1)} % against the squares.`);
}

export const view = {
  id: 'map',
  title: 'Alignment',
  tools: ['kind', 'layer', 'head', 'unit', 'gamma', 'gold'],
  draw(stage, { m, sentence, state }) {
    const gold = goldOf(sentence, state);
    const large = m.rows * m.cols > MOST;
    const room = stage.clientWidth - (large ? 210 : 30);
    const drawing = heatmap(m, { room, gamma: state.gamma, gold, choose: pin });
    if (gold) stage.append(judged(sentence, state, gold));
    if (large || drawing.viewBox.baseVal.width > stage.clientWidth - 10) {
      const all = windowed(drawing, m, { gamma: state.gamma, height: innerHeight * 0.8 });
      stage.append(all);
      all.settle();
    } else {
      stage.append(drawing);
    }
    return { drawing, point: ({ row, col }) => drawing.mark(row, col) };
  },
};
