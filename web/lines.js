// Two columns of words and a curve for each weight; a larger weight has a wider curve. If one layer
// and all of its heads are chosen, each head has its colour.

import { cut, el, svg, widthOf } from './dom.js';
import { HEADS, isDark } from './colours.js';
import { MEAN, heads, matrix } from './attention.js';
import { point, set } from './state.js';

const LINE = 27;
const GAP = { most: 420, least: 60 };  // between both columns
const LONGEST = 260;  // the longest word, in points

function curve(x1, y1, x2, y2) {
  const middle = (x1 + x2) / 2;
  return `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`;
}

// Width and opacity of the smallest weight. Thin lines need more of both on a dark page.
const thinnest = () => (isDark() ? { width: 1, opacity: 0.5 } : { width: 0.7, opacity: 0.25 });

function curves(m, place, { hide, colour, share, shift = 0 }) {
  const least = thinnest();
  const group = svg('g', { fill: 'none', stroke: colour, 'stroke-linecap': 'round' });
  for (let i = 0; i < m.rows; ++i)
    for (let j = 0; j < m.cols; ++j) {
      const weight = m.at(i, j);
      if (weight < Math.max(hide, 0.004)) continue;
      group.append(svg('path', {
        d: curve(place.left, place.y(j) + shift, place.right, place.y(i) + shift),
        'data-row': i, 'data-col': j, 'data-weight': weight.toFixed(4),
        'stroke-width': Math.max(least.width, 9 * weight * share),
        'stroke-opacity': Math.min(0.9, least.opacity + 0.65 * weight),
      }));
    }
  return group;
}

function column(names, x, anchor, place, side) {
  return names.map((name, i) => svg('text', {
    x, y: place.y(i) + 4, 'text-anchor': anchor, [`data-${side}`]: i,
    onmouseenter: () => (side === 'row' ? point(i, null) : point(null, i)),
    onmouseleave: () => point(null, null),
  }, cut(name, place.longest)));
}

function dim(drawing, { row, col }) {
  const on = (node) => (row === null || Number(node.dataset.row) === row)
    && (col === null || Number(node.dataset.col) === col);
  const any = row !== null || col !== null;
  for (const path of drawing.querySelectorAll('path'))
    path.style.strokeOpacity = any && !on(path) ? 0.04 : '';
  for (const text of drawing.querySelectorAll('text'))
    text.classList.toggle('on', any && (Number(text.dataset.row ?? -1) === row
      || Number(text.dataset.col ?? -1) === col));
}

// The headings of both columns: keys on the left, queries on the right.
const ATTENDED = 'attended to';
const querying = (kind) => (kind === 'cross' ? 'while generating' : 'attending from');

// The positions of both columns. A narrow screen reduces the gap and cuts long words and headings.
function placed(m, room) {
  const longest = Math.min(LONGEST, (room - GAP.least) / 2 - 12);
  const wide = (names) => Math.min(longest, Math.max(...names.map((name) => widthOf(name)))) + 12;
  const left = wide([ATTENDED, ...m.colNames]);
  const after = wide([querying(m.kind), ...m.rowNames]);
  const gap = Math.max(GAP.least, Math.min(GAP.most, room - left - after));
  return { longest, left, right: left + gap, width: left + gap + after, y: (i) => 42 + i * LINE };
}

function layersOfCurves(sentence, m, place, state) {
  const all = heads(sentence, state.kind);
  if (state.layer < 0 || state.head !== MEAN || all.length < 2)
    return [curves(m, place, { hide: state.hide, share: 1,
      colour: isDark() ? '#62a1de' : '#3182bd' })];
  const apart = Math.min(4, (LINE - 9) / all.length);  // so that heads do not overlap
  const hidden = off(state);
  const one = (head) => matrix(sentence, { ...state, head });
  return all.map((head, i) => (hidden.has(head) ? null : curves(one(head), place, {
    hide: state.hide, colour: HEADS[head % HEADS.length], share: Math.min(0.5, apart / 8),
    shift: (i - (all.length - 1) / 2) * apart,
  })));
}

// The heads that are switched off: "0,3" in the address, which counts from 0.
const off = (state) => new Set(state.off.split(',').filter((text) => text !== '').map(Number));

// A click switches a head on or off. A double click shows only this head, or all heads again.
function toggle(state, head) {
  const hidden = off(state);
  if (!hidden.delete(head)) hidden.add(head);
  set({ off: [...hidden].sort((a, b) => a - b).join(',') });
}

function alone(state, all, head) {
  const others = all.filter((other) => other !== head);
  const hidden = off(state);
  const is = others.every((other) => hidden.has(other));
  set({ off: is ? '' : others.join(',') });
}

function legend(all, state) {
  const hidden = off(state);
  return el('p', { class: 'legend squares' }, all.map((head) => {
    const square = el('button', { type: 'button', 'data-head': head,
      'aria-pressed': String(!hidden.has(head)),
      title: 'Click: on or off. Double click: only this head.',
      onclick: (event) => (event.detail > 1 ? alone(state, all, head) : toggle(state, head)),
    }, `head ${head + 1}`);
    square.style.setProperty('--square', HEADS[head % HEADS.length]);
    return square;
  }));
}

export const view = {
  id: 'lines',
  title: 'Lines',
  tools: ['kind', 'layer', 'head', 'unit', 'hide'],
  draw(stage, { m, sentence, state }) {
    const place = placed(m, stage.clientWidth - 30);
    const { left, right, width } = place;
    const height = Math.max(m.rows, m.cols) * LINE + 34;
    const drawing = svg('svg', {
      width, height, viewBox: `0 0 ${width} ${height}`, class: 'lines', role: 'figure',
    }, svg('text', { x: left - 8, y: 16, 'text-anchor': 'end', class: 'soft' },
      cut(ATTENDED, place.longest)),
    svg('text', { x: right + 8, y: 16, class: 'soft' }, cut(querying(m.kind), place.longest)),
    layersOfCurves(sentence, m, place, state),
    column(m.colNames, left - 8, 'end', place, 'col'),
    column(m.rowNames, right + 8, 'start', place, 'row'));
    stage.append(drawing);
    const all = heads(sentence, state.kind);
    if (all.length > 1 && state.head === MEAN)
      stage.append(state.layer >= 0 ? legend(all, state)
        : el('p', { class: 'note' }, 'Choose a layer to see each head in its colour.'));
    return { drawing, point: (at) => dim(drawing, at) };
  },
};
