// Inside attention: how the weights of one row come about, step by step with their numbers.

import { el, word } from './dom.js';
import { heads, layers, shown } from './attention.js';
import { explain } from './service.js';
import { bars, colours, digits, largestOf, say } from './strips.js';
import { set } from './state.js';

const isWeight = (step) => /^[αφ]/.test(step.name) && !Array.isArray(step.values[0]);

// One place is always chosen here: a mean has no numbers of its own.
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

// Steps that run over the words and follow each other stand side by side in one table.
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

function cell(step, j, { scale, width, names }) {
  const value = step.values[j];
  if (Array.isArray(value))
    return [el('td', {}, colours(value, { name: `${step.name} of ${names[j]}`, width, scale }))];
  const number = el('td', { class: 'number', title: String(value) }, digits(value));
  return isWeight(step) ? [number, weight(value)] : [number];
}

function table(steps, names, { width, col }) {
  const vectors = steps.filter((step) => Array.isArray(step.values[0]));
  const room = { width: Math.max(90, Math.floor((width - 130 - 90 * (steps.length - vectors.length))
    / Math.max(1, vectors.length)) - 16) };
  const scales = steps.map((step) => largestOf(step.values.flat()));
  const head = el('tr', {}, el('th'), steps.map((step) => el('th', {
    title: step.formula || null, colspan: isWeight(step) ? 2 : null }, step.name)));
  const rows = names.map((name, j) => el('tr', {
    'data-col': j, class: j === col ? 'chosen' : null, onclick: () => set({ col: j }),
  }, el('th', {}, word(name)), steps.map((step, k) =>
    cell(step, j, { scale: scales[k], names, ...room }))));
  const numbers = el('table', { class: 'inside-words' }, head, rows);
  numbers.steps = steps;
  return el('div', { class: 'inside-step' }, steps.filter((s) => s.formula).map(heading), numbers);
}

const valuesOf = (reply, name) => reply.steps.find((step) => step.name === name)?.values;

// The score of one word as a sum, number by number: q times k_j, or v times tanh.
function product(reply, col, width) {
  const q = valuesOf(reply, 'q') ?? valuesOf(reply, 'v');
  const k = (valuesOf(reply, 'k_j') ?? valuesOf(reply, 'tanh'))?.[col];
  if (!q || !k) return null;
  const names = valuesOf(reply, 'q') ? ['q', 'k'] : ['v', 'tanh'];
  const products = q.map((x, i) => x * k[i]);
  const sum = products.reduce((a, x) => a + x, 0);
  const line = (name, numbers) => el('tr', {}, el('th', {}, name),
    el('td', {}, bars(numbers, { name, width: width - 150 })));
  return el('div', { class: 'inside-step product', 'data-sum': sum },
    el('p', { class: 'formula' }, 'The score of ', el('b', {}, word(shown(reply.pieces[col]))),
      ` number by number: ${names[0]} times ${names[1]}, and their sum`),
    el('table', { class: 'inside-words' }, line(names[0], q), line(names[1], k),
      line(names.join(' × '), products)),
    el('p', { class: 'numbers' }, chain(reply, col, sum)));
}

// From the sum to the weight in one line: 3.21 ÷ 8 = 0.40; e^0.40 ÷ 16.3 = 0.092.
function chain(reply, col, sum) {
  const scaled = valuesOf(reply, '÷ √d_k');
  if (!scaled) return `sum = ${digits(sum)} = e`;
  const root = Math.sqrt(valuesOf(reply, 'q').length);
  const all = scaled.reduce((a, x) => a + Math.exp(x), 0);
  const alpha = valuesOf(reply, 'α_j')[col];
  return `sum = ${digits(sum)};  ÷ ${digits(root)} = ${digits(scaled[col])};  exp(${
    digits(scaled[col])}) ÷ ${digits(all)} = ${digits(alpha)}, the weight`;
}

function strongest(reply) {
  const weights = reply.steps.find(isWeight)?.values ?? [0];
  return weights.indexOf(Math.max(...weights));
}

function fill(stage, reply, place, state) {
  const width = stage.clientWidth - 40;
  const names = reply.pieces.map(shown);
  const col = state.col >= 0 && state.col < names.length ? state.col : strongest(reply);
  const where = reply.mechanism === 'multi-head'
    ? `${reply.kind} attention, layer ${place.layer}, head ${place.head}` : reply.mechanism;
  const [first, ...rest] = groups(reply.steps);
  const part = (group) => (group[0].of === 'words' ? table(group, names, { width, col })
    : ofQuery(group[0], width));
  stage.replaceChildren(
    el('h2', {}, reply.kind === 'cross' ? 'While it writes' : 'What is read by'), askers(reply),
    el('p', { class: 'note' }, `${where}. Click a piece to ask for another, a row to see its score `
      + 'number by number; point at a number to read it. Red is above zero, blue below.'),
    part(first), ...rest.map(part), product(reply, col, width) ?? '');
  stage.dataset.shown = JSON.stringify([place.kind, place.layer, place.head, place.row, col]);
}

export const view = {
  id: 'inside',
  steps: true,  // ← → choose one
  title: 'Inside',
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
