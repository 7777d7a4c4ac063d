// Training: the measured curves, and the attention at each checkpoint that was kept.

import { el, svg } from './dom.js';
import { HEADS } from './colours.js';
import { entropy, fitted, matrix, read } from './attention.js';
import { digits, say } from './number_bars.js';
import { heatmap } from './map.js';
import { trainedAttention, training, trainingNow } from './service.js';
import { set } from './state.js';

const CHART = { width: 340, height: 190, left: 54, right: 12, top: 12, bottom: 28 };
const FIRST = ['loss', 'ppl', 'bleu', 'lr', 'chrf', 'ter', 'aer'];  // the others after these
const KINDS = ['train', 'valid', 'average', 'test'];
const EVERY = 5000;  // milliseconds between two requests while the run continues

// {name: {kind: [[update, value], …]}} from {kind: {name: …}}, in the order of the charts.
function byName(curves) {
  const names = new Map();
  for (const kind of KINDS)
    for (const [name, points] of Object.entries(curves[kind] ?? {}))
      names.set(name, { ...names.get(name), [kind]: points });
  const dull = (series) => {
    const points = Object.values(series).flat();
    return points.length < 2 || points.every(([, value]) => value === 0);
  };
  const place = (name) => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length);
  return [...names].filter(([, series]) => !dull(series))
    .sort(([a], [b]) => place(a) - place(b));
}

function scales(series) {
  const all = Object.values(series).flat();
  const values = all.map(([, value]) => value);
  const low = Math.min(...values);
  const high = Math.max(...values);
  const last = Math.max(...all.map(([update]) => update));
  const { width, height, left, right, top, bottom } = CHART;
  return {
    low, high, last,
    x: (update) => left + (update / (last || 1)) * (width - left - right),
    y: (value) => height - bottom - ((value - low) / (high - low || 1)) * (height - top - bottom),
  };
}

function chart(name, series, now) {
  const { low, high, last, x, y } = scales(series);
  const { width, height, left, right, bottom } = CHART;
  const drawing = svg('svg', { width, height, viewBox: `0 0 ${width} ${height}`, class: 'curve',
    role: 'figure', 'aria-label': `${name} by update`, 'data-name': name });
  const text = (at, what, anchor) => svg('text', { ...at, class: 'soft', 'text-anchor': anchor },
    what);
  drawing.append(
    svg('line', { x1: left, x2: width - right, y1: height - bottom, y2: height - bottom,
      class: 'axis' }),
    text({ x: left - 6, y: y(low) + 4 }, digits(low), 'end'),
    high > low ? text({ x: left - 6, y: y(high) + 9 }, digits(high), 'end') : '',
    text({ x: width - right, y: height - 8 }, `update ${last}`, 'end'));
  Object.entries(series).forEach(([kind, points]) => {
    const colour = HEADS[KINDS.indexOf(kind) % HEADS.length];
    const line = points.map(([update, value]) => `${x(update).toFixed(1)},${y(value).toFixed(1)}`);
    if (points.length > 1) drawing.append(svg('polyline', { points: line.join(' '), fill: 'none',
      stroke: colour, 'stroke-width': 1.6 }));
    for (const [update, value] of points)
      drawing.append(svg('circle', { cx: x(update), cy: y(value), r: points.length > 60 ? 1.5 : 2.6,
        fill: colour, 'data-kind': kind, 'data-update': update, 'data-value': value,
        onmouseenter: () => say(`${kind} ${name} after update ${update} = ${digits(value)}`),
        onmouseleave: () => say('') }));
  });
  if (now !== undefined && now <= last) drawing.append(svg('line', { x1: x(now), x2: x(now),
    y1: CHART.top, y2: height - bottom, class: 'now' }));
  const kinds = el('span', { class: 'legend' }, Object.keys(series).map((kind) => {
    const node = el('span', {}, kind);
    node.style.borderColor = HEADS[KINDS.indexOf(kind) % HEADS.length];
    return node;
  }));
  return el('div', { class: 'chart' }, el('h2', {}, name, ' ', kinds), drawing);
}

// A slider that keeps its position when updates are added or removed, also while it is dragged.
function slider() {
  let updates = [];
  const name = el('span');
  const input = el('input', { type: 'range', class: 'step', min: 0, 'aria-label': 'Update',
    oninput: () => set({ update: updates[input.value] }) });
  return {
    node: el('div', { class: 'steps wide' }, name, input),
    show(all, at) {
      updates = all;
      name.textContent = `update ${all[at]}`;
      input.max = all.length - 1;
      input.value = at;
    },
  };
}

async function then(body, { sentence, state, model, room, update }) {
  if (body.dataset.wanted === String(update)) return;
  body.dataset.wanted = update;
  const answer = await trainedAttention(model, update, sentence.source.text, sentence.target.text);
  if (body.dataset.wanted !== String(update)) return;
  const past = read(answer);
  const m = matrix(past, fitted(past, state));
  body.replaceChildren(el('p', {}, `Mean entropy ${entropy(m).toFixed(3)} bits per row`),
    heatmap(m, { room, gamma: state.gamma, live: false }));
  body.dataset.shown = update;
}

// Returns a function that draws the state of a run, and draws it again when there is more. The
// chosen update stays, even if the run has deleted it since.
function picture(body, context) {
  const { state } = context;
  const steps = slider();
  const charts = el('div', { class: 'charts' });
  const past = el('div', { class: 'past' });
  const looked = el('div', {}, el('h2', {}, 'Attention during training'), steps.node,
    past);
  const none = el('p', { class: 'note' }, 'No checkpoint was kept.');
  body.append(charts, looked, none);
  return ({ updates, curves }) => {
    const gone = past.dataset.shown === String(state.update) && !updates.includes(state.update);
    const all = gone ? [...updates, state.update].sort((a, b) => a - b) : updates;
    const at = all.includes(state.update) ? all.indexOf(state.update) : all.length - 1;
    charts.replaceChildren(
      ...byName(curves).map(([name, series]) => chart(name, series, all[at])));
    looked.hidden = all.length === 0;
    none.hidden = !looked.hidden;
    if (looked.hidden) return null;
    steps.show(all, at);
    return then(past, { ...context, update: all[at] });
  };
}

// Polls as long as the view is open and the run continues. A request without an answer does not end
// the polling.
function follow(body, model, show) {
  setTimeout(async () => {
    if (!body.isConnected) return;
    const told = document.hidden ? null : await trainingNow(model).catch(() => null);
    if (!body.isConnected) return;
    if (told) await show(told)?.catch(() => {});
    if (told?.running ?? true) follow(body, model, show);
  }, EVERY);
}

export const view = {
  id: 'training',
  bare: true,
  title: 'Training',
  hint: 'Point at a dot of a curve to read its value.',
  tools: ['kind', 'layer', 'head', 'unit', 'gamma'],
  asks: true,
  saves: [],
  draw(stage, context) {
    const { model } = context;
    if (!model.training) {
      stage.append(el('p', { class: 'note' }, 'This model has no training log. '
        + 'fovea serve --run DIR shows a run of fovea train.'));
      return { hint: '' };
    }
    const body = el('div', { class: 'training' });
    stage.append(body);
    training(model).then((told) => {
      const show = picture(body, { ...context, room: stage.clientWidth - 60 });
      if (told.running) follow(body, model, show);
      return show(told);
    }).catch((error) => body.append(el('p', { class: 'note' }, error.message)));
    return {};
  },
};
