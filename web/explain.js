// Inside attention: the computation of the weights of one row, step by step with all numbers.

import { el, word } from './dom.js';
import { KIND_NAMES, heads, layers, shown } from './attention.js';
import { explain } from './service.js';
import { bars, colours, digits, digitsOf, largestOf, say } from './number_bars.js';
import { set } from './state.js';

// This view always shows one layer and head, because a mean has no computation to explain.
function chosen(sentence, state) {
  const all = sentence.maps.filter((m) => m.kind === state.kind);
  const layer = layers(sentence, state.kind).includes(state.layer) ? state.layer : 0;
  const head = heads(sentence, state.kind).includes(state.head) ? state.head : 0;
  const row = Math.max(0, Math.min(all[0].rows - 1, state.step));
  return { kind: state.kind, layer, head, row };
}

function askers(reply) {
  const line = el('div', { class: 'words asking' });
  reply.asking.forEach((piece, i) => line.append(word(shown(piece), {
    'data-row': i, class: i === reply.row ? 'now' : null, onclick: () => set({ step: i, col: -1 }),
  })));
  return line;
}

// Groups consecutive steps over the words; each group is one table.
function groups(steps) {
  const list = [];
  for (const step of steps) {
    const last = list.at(-1);
    if (step.of === 'words' && last?.[0].of === 'words') last.push(step);
    else list.push([step]);
  }
  return list;
}

function heading(step) {
  return step.formula ? el('p', { class: 'formula' }, el('b', {}, `${step.step} `), step.formula)
    : el('p', { class: 'formula' }, step.name);
}

function ofQuery(step, width) {
  const name = step.name;
  const numbers = step.values.length <= 8
    ? el('p', { class: 'numbers' }, step.values.map(digits).join('  '))
    : bars(step.values, { name, width });
  numbers.values = step.values;
  numbers.classList.add('of-query');
  return el('div', { class: 'inside-step', 'data-name': name }, heading(step), numbers);
}

function weight(x) {
  const bar = el('div', { class: 'bar' });
  bar.style.width = `${100 * Math.max(0, Math.min(1, x))}%`;
  return el('td', { class: 'share' }, bar);
}

const isScalar = (step) => step.of === 'words' && !Array.isArray(step.values[0]);

function cell(step, j, { scale, width, names }) {
  const value = step.values[j];
  if (Array.isArray(value))
    return [el('td', {}, colours(value, { name: `${step.name} of ${names[j]}`, width, scale }))];
  const text = digitsOf(step.values)(value);
  const number = el('td', { class: 'number', title: String(value) }, text);
  return step.weights ? [number, weight(value)] : [number];
}

function table(steps, names, { width, col }) {
  const vectors = steps.filter((step) => Array.isArray(step.values[0]));
  const room = { width: Math.max(90, Math.floor((width - 130 - 90 * (steps.length - vectors.length))
    / Math.max(1, vectors.length)) - 16) };
  const scales = steps.map((step) => largestOf(step.values.flat()));
  const head = el('tr', {}, el('th'), steps.map((step) => el('th', {
    title: step.formula || null, colspan: step.weights ? 2 : null }, step.name)));
  const rows = names.map((name, j) => el('tr', {
    'data-col': j, class: j === col ? 'chosen' : null, onclick: () => set({ col: j }),
  }, el('th', {}, word(name)), steps.map((step, k) =>
    cell(step, j, { scale: scales[k], names, ...room }))));
  const numbers = el('table', { class: 'inside-words' }, head, rows);
  numbers.steps = steps;
  return el('div', { class: 'inside-step' }, steps.filter((s) => s.formula).map(heading), numbers);
}

// The values of a step for one word, as a list.
function partOf(reply, name, col) {
  const { of, values } = reply.steps.find((step) => step.name === name);
  return [of === 'words' ? values[col] : values].flat();
}

// The score of one word as a sum of products, term by term: q times k_j, v times tanh, or the
// Gaussians of a window, which are only added.
function product(reply, col, width) {
  const step = reply.steps.find((one) => one.factors);
  if (!step) return null;
  const names = step.factors;
  const factors = names.map((name) => partOf(reply, name, col));
  const terms = factors[0].map((x, i) => factors.slice(1).reduce((all, list) => all * list[i], x));
  const sum = terms.reduce((a, x) => a + x, 0);
  const line = (name, numbers) => el('tr', {}, el('th', {}, name),
    el('td', {}, bars(numbers, { name, width: width - 150 })));
  return el('div', { class: 'inside-step product', 'data-sum': sum },
    el('p', { class: 'formula' }, `${step.name} of `, el('b', {}, word(shown(reply.pieces[col]))),
      ` is the sum of ${names.join(' × ')}, term by term:`),
    el('table', { class: 'inside-words' }, names.map((name, i) => line(name, factors[i])),
      names.length > 1 ? line(names.join(' × '), terms) : null),
    el('p', { class: 'numbers' }, chain(reply, step, col)));
}

// The denominator of the softmax if `to` is the softmax of `from`, otherwise null.
function softmaxSum(from, to) {
  const all = from.values.reduce((a, x) => a + Math.exp(x), 0);
  const same = from.values.every((x, j) => Math.abs(Math.exp(x) / all - to.values[j]) < 1e-5);
  return Number.isFinite(all) && same ? all : null;
}

// The steps from the sum to the weight in one line: q·k_j = 3.210;  ÷ √d_k = 0.401;
// α_j = exp(0.401) ÷ 16.30 = 0.092.
function chain(reply, step, col) {
  const steps = reply.steps.slice(reply.steps.indexOf(step)).filter(isScalar);
  return steps.map((one, k) => {
    const all = k > 0 ? softmaxSum(steps[k - 1], one) : null;
    const how = all === null ? '' : `exp(${digits(steps[k - 1].values[col])}) ÷ ${digits(all)} = `;
    return `${one.name} = ${how}${digits(one.values[col])}`;
  }).join(';  ');
}

function strongest(reply) {
  const weights = reply.steps.find((step) => step.weights)?.values ?? [0];
  return weights.indexOf(Math.max(...weights));
}

function fill(stage, reply, place, state) {
  const width = stage.clientWidth - 40;
  const names = reply.pieces.map(shown);
  const col = state.col >= 0 && state.col < names.length ? state.col : strongest(reply);
  const where = reply.mechanism === 'multi-head'
    ? `${KIND_NAMES[reply.kind]}, layer ${place.layer + 1}, head ${place.head + 1}`
    : reply.mechanism;
  const [first, ...rest] = groups(reply.steps);
  const part = (group) => (group[0].of === 'words' ? table(group, names, { width, col })
    : ofQuery(group[0], width));
  stage.replaceChildren(
    el('h2', {}, reply.kind === 'cross' ? 'Generating' : 'Attending from'), askers(reply),
    el('p', { class: 'note' }, `${where}. Click another piece to explain it, or a row to see its `
      + 'score term by term. Point at a number to read it. Red is above zero, blue below.'),
    part(first), ...rest.map(part), product(reply, col, width) ?? '');
  stage.dataset.shown = JSON.stringify([place.kind, place.layer, place.head, place.row, col]);
}

export const view = {
  id: 'inside',
  steps: true,  // ← → choose a step
  title: 'Inside',
  hint: 'Point at a number to read it. Click a word to see the step that writes it.',
  tools: ['kind', 'layer', 'head'],
  asks: true,
  saves: [],
  single: true,
  draw(stage, { sentence, state, model }) {
    const place = chosen(sentence, state);
    const body = el('div', { class: 'inside' });
    stage.append(body);
    let reply = null;
    const show = () => fill(body, reply, place, state);
    explain(state.text, sentence, model, place).then((answer) => {
      reply = answer;
      say('');
      show();
    }, (error) => body.append(el('p', { class: 'note' }, error.message)));
    return {};
  },
};
