// The state of a mechanism at one step (position, window, κ, frontier), drawn over the weights.

import { cut, svg, widthOf } from './dom.js';
import { blues, css } from './colours.js';

const HEIGHT = 150;
const BASE = 118;
const TALL = 100;  // the height of a bar at the end of the axis
const TOP = 16;  // below the labels of the markers
const LEFT = 34;  // for the numbers of the axis
const EDGE = 10;
const LEAST = 7;  // points per word; if there is less space, the chart scrolls
const LABEL = 15;  // distance of slanted names, in points
const LONGEST = 140;  // the longest name, in points
const MARK = '#e07b00';

const NOTES = {
  global: 'The weights of all source words are computed again at each step.',
  'multi-head': 'Each head computes the weights of all source words again at each step.',
  'local-m': 'The window moves by one word at each step.',
  'local-p': 'The model predicts a position p and attends to the window of ±D words around it. '
    + 'The curve is the Gaussian factor: less weight farther from p. The weights sum to less '
    + 'than 1.',
  'hard-argmax': 'One piece is chosen. The outlines show the distribution behind the choice.',
  'hard-sample': 'One piece is chosen. The outlines show the distribution behind the choice.',
  forward: 'Words to the left of the frontier have no weight. The frontier follows the focus of '
    + 'the previous step, by default one word behind it, so the model can go back by one word.',
  window: 'Each κ is the middle of a soft window, which only moves forward. Graves’s weights φ '
    + 'need not sum to 1. Maps and bars show φ divided by its sum.',
  static: 'The weights are the same at every step: they depend only on the source.',
};

const LOCATION = 'The weights of all positions depend only on the state of the decoder, '
  + 'a = softmax(W s). This score does not use the words at these positions.';

export const note = (mechanism, score) => (score === 'location' && mechanism === 'global'
  ? LOCATION : NOTES[mechanism] ?? '');

// The end of the axis: the same at all steps of a sentence, so that bars are comparable.
export function fullOf(...lists) {
  let most = 0;
  for (const list of lists) for (const w of list ?? []) most = Math.max(most, w);
  return [0.1, 0.2, 0.5].find((full) => most <= full) ?? 1;
}

// The service counts positions from 1, the drawing counts places from 0.
function scale(count, room, full) {
  const step = Math.max(LEAST, Math.min(84, (room - LEFT - EDGE) / count));
  return { step, x: (place) => LEFT + (place + 0.5) * step, width: LEFT + count * step + EDGE,
    height: (w) => TALL * w / full };
}

function bars(weights, { x, step, height }, solid) {
  return weights.map((w, j) => svg('rect', {
    x: x(j) - step * 0.36, width: step * 0.72, y: BASE - height(w), height: height(w),
    fill: solid ? css(blues(0.35 + 0.6 * w)) : 'none', class: solid ? 'weight' : 'soft-weight',
    stroke: solid ? 'none' : 'currentColor', 'stroke-opacity': 0.6, 'stroke-dasharray': '3 2',
    'data-weight': w.toFixed(4),
  }));
}

// A line with a name above it. The name stays within the drawing.
function marker(x, text, name, width) {
  const half = text ? widthOf(text) / 2 + 2 : 0;
  return [
    svg('line', { x1: x, x2: x, y1: TOP, y2: BASE, stroke: MARK, 'stroke-width': 1.5,
      class: name }),
    text ? svg('text', { x: Math.max(half, Math.min(width - half, x)), y: 11,
      'text-anchor': 'middle', class: 'soft' }, text) : null,
  ];
}

function windowOf(extra, row, count) {
  const p = extra.p_t[row] - 1;
  const middle = Math.floor(p + 0.5);
  const half = extra.window ?? count;
  return { p, from: Math.max(0, middle - half), to: Math.min(count - 1, middle + half) };
}

// local-m, local-p: the window around p_t and the Gaussian inside it. The Gaussian is a factor: its
// maximum is 1 and does not depend on the axis of the weights.
function window(extra, row, count, { x, step }) {
  const { p, from, to } = windowOf(extra, row, count);
  const drawn = [svg('rect', {
    x: x(from) - step / 2, width: Math.max(0, (to - from + 1) * step), y: TOP, height: BASE - TOP,
    fill: 'currentColor', 'fill-opacity': 0.07, class: 'window',
  })];
  if (!(extra.sigma > 0)) return drawn;
  const points = [];
  for (let at = from - 0.5; at <= to + 0.5; at += 0.05)
    points.push(`${x(at).toFixed(1)},${(BASE - TALL
      * Math.exp(-((at - p) ** 2) / (2 * extra.sigma ** 2))).toFixed(1)}`);
  drawn.push(svg('polyline', {
    points: points.join(' '), fill: 'none', stroke: MARK, 'stroke-width': 1.5, class: 'gaussian',
  }));
  return drawn;
}

// p, and next to its name the number of words of the window on each side.
function position(extra, row, { x, width }) {
  const text = `p = ${extra.p_t[row].toFixed(2)}`;
  const drawn = marker(x(extra.p_t[row] - 1), text, 'position', width);
  if (extra.window === undefined) return drawn;
  const reach = `± D = ${extra.window}`;
  const at = Number(drawn[1].getAttribute('x'));
  const after = at + widthOf(text) / 2 + 10;
  const fits = after + widthOf(reach) < width;
  drawn.push(svg('text', { x: fits ? after : at - widthOf(text) / 2 - 10, y: 11,
    'text-anchor': fits ? 'start' : 'end', class: 'soft reach' }, reach));
  return drawn;
}

const below = (number) => [...String(number)].map((digit) => '₀₁₂₃₄₅₆₇₈₉'[digit]).join('');

// Neighbouring κ share one label, κ₁ κ₂. A κ after the last word has an arrow.
function kappaNames(places, width) {
  const name = (x, k) => ({ x: Math.min(x, width),
    text: `κ${below(k + 1)}${x > width ? '→' : ''}` });
  const sorted = places.map(name).sort((a, b) => a.x - b.x);
  const groups = [];
  for (const one of sorted) {
    const last = groups.at(-1);
    if (last && one.x - last.x < widthOf(`${last.text} ${one.text}`)) last.text += ` ${one.text}`;
    else groups.push({ ...one });
  }
  return groups.map(({ x, text }) => svg('text', {
    x: Math.max(0, Math.min(x - 6, width - widthOf(text))), y: 10, class: 'soft' }, text));
}

function kappas(extra, row, rows, { x, width }) {
  const count = extra.kappa.length / rows;
  const drawn = [];
  const places = [];
  for (let k = 0; k < count; ++k) {
    const at = x(extra.kappa[row * count + k] - 1);
    places.push(at);
    drawn.push(...marker(at, null, 'kappa'));
    drawn.push(svg('circle', { cx: at, cy: TOP + 1, r: 3, fill: MARK }));
    if (row === 0) continue;
    const before = x(extra.kappa[(row - 1) * count + k] - 1);
    drawn.push(svg('line', { x1: before, x2: at, y1: TOP + 1, y2: TOP + 1, stroke: MARK,
      'stroke-opacity': 0.5 }));
  }
  return [...drawn, ...kappaNames(places, width)];
}

function frontier(extra, row, { x, step, width }) {
  const edge = x(extra.frontier[row]) - step / 2;
  return [
    svg('rect', { x: LEFT, y: TOP, width: Math.max(0, edge - LEFT), height: BASE - TOP,
      fill: 'currentColor', 'fill-opacity': 0.1 }),
    ...marker(edge, 'frontier', 'frontier', width),
  ];
}

// The numbers of the axis, and the largest weight of this step.
function axis(weights, { x, step, width, height }, full) {
  const line = (y, opacity) => svg('line', { x1: LEFT, x2: width - EDGE, y1: y, y2: y,
    stroke: 'currentColor', 'stroke-opacity': opacity });
  const drawn = [0, full / 2, full].map((w) => [
    line(BASE - height(w), w === 0 ? 0.4 : 0.12),
    svg('text', { x: LEFT - 5, y: BASE - height(w) + 4, 'text-anchor': 'end', class: 'soft scale' },
      String(w))]);
  const most = weights.indexOf(Math.max(...weights));
  const top = BASE - height(weights[most]);
  const beside = top < TOP + 16;  // the name of a marker is above it
  const turned = x(most) > width - 60;
  drawn.push(svg('text', {
    x: beside ? x(most) + (turned ? -1 : 1) * (step * 0.36 + 4) : x(most),
    y: beside ? top + 12 : top - 4, class: 'soft largest',
    'text-anchor': !beside ? 'middle' : turned ? 'end' : 'start',
  }, weights[most].toFixed(2)));
  return drawn;
}

// Names below the bars. If they would overlap, some are omitted, but never that of the largest
// weight.
function names(all, weights, { x, step }) {
  const slanted = all.some((name) => widthOf(name) > step - 4);
  const each = slanted ? Math.ceil(LABEL / step) : 1;
  const most = weights.indexOf(Math.max(...weights));
  const longest = Math.min(LONGEST, Math.max(...all.map((name) => widthOf(name))));
  const drawn = all.map((name, j) => {
    if (j !== most && (j % each !== 0 || Math.abs(j - most) < each)) return null;
    return svg('text', {
      x: x(j), y: BASE + 17, 'text-anchor': slanted ? 'end' : 'middle', 'data-col': j,
      transform: slanted ? `rotate(-45 ${x(j)} ${BASE + 12})` : null,
    }, cut(name, LONGEST));
  });
  return { drawn, height: slanted ? HEIGHT + longest * Math.SQRT1_2 - 8 : HEIGHT };
}

// The weights of step `row` over the source pieces as bars, with the state of the mechanism.
export function drawMechanism({ weights, names: all, extra, row, rows, room, full }) {
  const place = scale(all.length, room, full);
  const drawn = [];
  if (extra.p_t) drawn.push(...window(extra, row, all.length, place));
  if (extra.frontier) drawn.push(...frontier(extra, row, place));
  drawn.push(...bars(weights, place, true));
  if (extra.soft) {
    const soft = [...extra.soft.slice(row * all.length, (row + 1) * all.length)];
    drawn.push(...bars(soft, place, false));
  }
  if (extra.kappa) drawn.push(...kappas(extra, row, rows, place));
  if (extra.p_t) drawn.push(...position(extra, row, place));
  const { drawn: words, height } = names(all, weights, place);
  return svg('svg', {
    width: place.width, height, viewBox: `0 0 ${place.width} ${height}`, class: 'mechanism',
    role: 'figure', 'aria-label': 'Weights of this step',
  }, drawn, words, axis(weights, place, full));
}
