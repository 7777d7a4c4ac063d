// The series of a mechanism at one step, drawn over the weights. The service sends the name, label
// and kind of each series; the kind defines the drawing.

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

// local-m, local-p: the window of ±D words around p.
function windowOf(p, half, count) {
  const middle = Math.floor(p + 0.5);
  return { from: Math.max(0, middle - half), to: Math.min(count - 1, middle + half) };
}

function window({ p, half, count }, { x, step }) {
  const { from, to } = windowOf(p, half, count);
  return [svg('rect', {
    x: x(from) - step / 2, width: Math.max(0, (to - from + 1) * step), y: TOP, height: BASE - TOP,
    fill: 'currentColor', 'fill-opacity': 0.07, class: 'window',
  })];
}

// The Gaussian inside the window. It is a factor: its maximum is 1 and does not depend on the axis
// of the weights.
function gaussian({ p, half, count }, sigma, { x }) {
  if (!(sigma > 0)) return [];
  const { from, to } = windowOf(p, half, count);
  const points = [];
  for (let at = from - 0.5; at <= to + 0.5; at += 0.05)
    points.push(`${x(at).toFixed(1)},${(BASE - TALL
      * Math.exp(-((at - p) ** 2) / (2 * sigma ** 2))).toFixed(1)}`);
  return [svg('polyline', {
    points: points.join(' '), fill: 'none', stroke: MARK, 'stroke-width': 1.5, class: 'gaussian',
  })];
}

// A position, and next to its name the number of words of its window on each side.
function position({ p, label, half, limited }, { x, width }) {
  const text = `${label} = ${(p + 1).toFixed(2)}`;
  const drawn = marker(x(p), text, 'position', width);
  if (!limited) return drawn;
  const reach = `± D = ${half}`;
  const at = Number(drawn[1].getAttribute('x'));
  const after = at + widthOf(text) / 2 + 10;
  const fits = after + widthOf(reach) < width;
  drawn.push(svg('text', { x: fits ? after : at - widthOf(text) / 2 - 10, y: 11,
    'text-anchor': fits ? 'start' : 'end', class: 'soft reach' }, reach));
  return drawn;
}

const below = (number) => [...String(number)].map((digit) => '₀₁₂₃₄₅₆₇₈₉'[digit]).join('');

// Neighbouring centres share one label, κ₁ κ₂. A centre after the last word has an arrow.
function centreNames(label, places, width) {
  const name = (x, k) => ({ x: Math.min(x, width),
    text: `${label}${below(k + 1)}${x > width ? '→' : ''}` });
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

function centres({ name, label, values }, row, rows, { x, width }) {
  const count = values.length / rows;
  const drawn = [];
  const places = [];
  for (let k = 0; k < count; ++k) {
    const at = x(values[row * count + k] - 1);
    places.push(at);
    drawn.push(...marker(at, null, name));
    drawn.push(svg('circle', { cx: at, cy: TOP + 1, r: 3, fill: MARK }));
    if (row === 0) continue;
    const before = x(values[(row - 1) * count + k] - 1);
    drawn.push(svg('line', { x1: before, x2: at, y1: TOP + 1, y2: TOP + 1, stroke: MARK,
      'stroke-opacity': 0.5 }));
  }
  return [...drawn, ...centreNames(label, places, width)];
}

function frontier({ name, label, values }, row, { x, step, width }) {
  const edge = x(values[row]) - step / 2;
  return [
    svg('rect', { x: LEFT, y: TOP, width: Math.max(0, edge - LEFT), height: BASE - TOP,
      fill: 'currentColor', 'fill-opacity': 0.1 }),
    ...marker(edge, label, name, width),
  ];
}

// The series of one step: those behind the bars, and those in front of them. half_width and
// deviation belong to the position before them.
function layers(series, row, rows, count, place) {
  const behind = [];
  const front = [];
  const positions = [];
  for (const one of series) {
    const last = positions.at(-1);
    if (one.kind === 'position')
      positions.push({ p: one.values[row] - 1, label: one.label, half: count, count });
    else if (one.kind === 'half_width')
      Object.assign(last, { half: one.values, limited: true });
    else if (one.kind === 'deviation')
      last.sigma = one.values;
    else if (one.kind === 'frontier')
      behind.push(...frontier(one, row, place));
    else if (one.kind === 'distribution')
      front.push(...bars([...one.values.slice(row * count, (row + 1) * count)], place, false));
    else if (one.kind === 'centres')
      front.push(...centres(one, row, rows, place));
  }
  for (const one of positions) {
    if (one.limited) behind.push(...window(one, place));
    behind.push(...gaussian(one, one.sigma, place));
    front.push(...position(one, place));
  }
  return { behind, front };
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

// The weights of step `row` over the source pieces as bars, with the series of the mechanism.
export function drawMechanism({ weights, names: all, series, row, rows, room, full }) {
  const place = scale(all.length, room, full);
  const { behind, front } = layers(series, row, rows, all.length, place);
  const drawn = [...behind, ...bars(weights, place, true), ...front];
  const { drawn: words, height } = names(all, weights, place);
  return svg('svg', {
    width: place.width, height, viewBox: `0 0 ${place.width} ${height}`, class: 'mechanism',
    role: 'figure', 'aria-label': 'Weights of this step',
  }, drawn, words, axis(weights, place, full));
}
