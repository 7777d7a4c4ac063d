// What a mechanism has of its own at one step, drawn over the weights of that step.

import { svg, widthOf } from './dom.js';
import { blues, css } from './colours.js';

const HEIGHT = 150;
const BASE = 118;
const TOP = 16;  // below what is written above a marker

const NOTES = {
  global: 'Every source word is weighed anew at each step.',
  'multi-head': 'Each head weighs every source word anew at each step.',
  'local-m': 'The window moves on by one word at each step.',
  'local-p': 'The model predicts a position p and looks around it: inside the window of ±D words, '
    + 'the less the farther from p (the curve).',
  'hard-argmax': 'One word is chosen. The outlines show the distribution behind the choice.',
  'hard-sample': 'One word is chosen. The outlines show the distribution behind the choice.',
  forward: 'Words to the left of the frontier are behind it: the model does not go back.',
  window: 'Each κ is the middle of a soft window that only ever moves forward.',
  static: 'The weights are the same at every step: they depend on the source alone.',
};

export const note = (mechanism) => NOTES[mechanism] ?? '';

// Positions are counted from 1 by the service; places on the drawing from 0.
function scale(count, width) {
  const step = Math.min(84, (width - 20) / count);
  return { step, x: (place) => 10 + (place + 0.5) * step, width: 20 + count * step };
}

function bars(weights, { x, step }, solid) {
  return weights.map((w, j) => svg('rect', {
    x: x(j) - step * 0.36, width: step * 0.72, y: BASE - 100 * w, height: 100 * w,
    fill: solid ? css(blues(0.35 + 0.6 * w)) : 'none', class: solid ? 'weight' : 'soft-weight',
    stroke: solid ? 'none' : 'currentColor', 'stroke-opacity': 0.6, 'stroke-dasharray': '3 2',
    'data-weight': w.toFixed(4),
  }));
}

// local-m, local-p: the window around p_t, and the Gaussian inside it.
function window(extra, row, count, { x, step }) {
  const p = extra.p_t[row] - 1;
  const drawn = [];
  const half = extra.window ?? count;
  const middle = Math.floor(p + 0.5);
  const from = Math.max(0, middle - half);
  const to = Math.min(count - 1, middle + half);
  drawn.push(svg('rect', {
    x: x(from) - step / 2, width: Math.max(0, (to - from + 1) * step), y: TOP, height: BASE - TOP,
    fill: 'currentColor', 'fill-opacity': 0.07, class: 'window',
  }));
  if (extra.sigma > 0) {
    const points = [];
    for (let at = from - 0.5; at <= to + 0.5; at += 0.05)
      points.push(`${x(at).toFixed(1)},${(BASE - 100
        * Math.exp(-((at - p) ** 2) / (2 * extra.sigma ** 2))).toFixed(1)}`);
    drawn.push(svg('polyline', {
      points: points.join(' '), fill: 'none', stroke: '#e07b00', 'stroke-width': 1.5,
      class: 'gaussian',
    }));
  }
  drawn.push(...marker(x(p), `p = ${extra.p_t[row].toFixed(2)}`, 'position'));
  return drawn;
}

function marker(x, text, name) {
  return [
    svg('line', { x1: x, x2: x, y1: TOP, y2: BASE, stroke: '#e07b00', 'stroke-width': 1.5,
      class: name }),
    text ? svg('text', { x, y: 11, 'text-anchor': 'middle', class: 'soft' }, text) : null,
  ];
}

function kappas(extra, row, rows, { x }) {
  const count = extra.kappa.length / rows;
  const drawn = [];
  for (let k = 0; k < count; ++k) {
    const at = x(extra.kappa[row * count + k] - 1);
    drawn.push(...marker(at, null, 'kappa'));
    drawn.push(svg('circle', { cx: at, cy: 14, r: 3, fill: '#e07b00' }));
    if (row === 0) continue;
    const before = x(extra.kappa[(row - 1) * count + k] - 1);
    drawn.push(svg('line', { x1: before, x2: at, y1: 14, y2: 14, stroke: '#e07b00',
      'stroke-opacity': 0.5 }));
  }
  return drawn;
}

function frontier(extra, row, { x, step }) {
  const edge = x(extra.frontier[row]) - step / 2;
  return [
    svg('rect', { x: 10, y: TOP, width: Math.max(0, edge - 10), height: BASE - TOP,
      fill: 'currentColor', 'fill-opacity': 0.1 }),
    ...marker(edge, null, 'frontier'),
  ];
}

// Weights of step `row` over the source pieces as bars, with the mechanism's own state.
export function drawMechanism({ weights, names, extra, row, rows, room }) {
  const place = scale(names.length, room);
  const drawn = [];
  if (extra.p_t) drawn.push(...window(extra, row, names.length, place));
  if (extra.frontier) drawn.push(...frontier(extra, row, place));
  drawn.push(...bars(weights, place, true));
  if (extra.soft) {
    const soft = [...extra.soft.slice(row * names.length, (row + 1) * names.length)];
    drawn.push(...bars(soft, place, false));
  }
  if (extra.kappa) drawn.push(...kappas(extra, row, rows, place));
  const slanted = names.some((name) => widthOf(name) > place.step - 4);
  names.forEach((name, j) => {
    const x = place.x(j);
    drawn.push(svg('text', {
      x, y: BASE + 17, 'text-anchor': slanted ? 'end' : 'middle', 'data-col': j,
      transform: slanted ? `rotate(-45 ${x} ${BASE + 12})` : null,
    }, name));
  });
  const longest = Math.max(...names.map((name) => widthOf(name)));
  const height = slanted ? HEIGHT + longest * Math.SQRT1_2 - 8 : HEIGHT;
  drawn.push(svg('line', { x1: 10, x2: place.width - 10, y1: BASE, y2: BASE,
    stroke: 'currentColor', 'stroke-opacity': 0.4 }));
  return svg('svg', {
    width: place.width, height, viewBox: `0 0 ${place.width} ${height}`, class: 'mechanism',
    role: 'figure', 'aria-label': 'Weights of this step',
  }, drawn);
}
