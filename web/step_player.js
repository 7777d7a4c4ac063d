// The translation step by step: what the model attends to while it writes the next piece.

import { el, word } from './dom.js';
import { blues, css, ink } from './colours.js';
import { choices, fitted, largest, matrix, shown } from './attention.js';
import { drawMechanism, fullOf } from './mechanism.js';
import { point, set } from './state.js';

function sourceWords(m, row) {
  const line = el('div', { class: 'words source' });
  m.colNames.forEach((name, j) => {
    const weight = m.at(row, j);
    const colour = blues(weight, 0.7);
    const node = word(name, { 'data-col': j, 'data-weight': weight.toFixed(4),
      onmouseenter: () => point(row, j), onmouseleave: () => point(null, null) });
    node.style.background = css(colour);
    node.style.color = ink(colour);
    if (weight >= 0.05) node.append(el('small', {}, weight.toFixed(2)));
    line.append(node);
  });
  return line;
}

function targetWords(m, row) {
  const line = el('div', { class: 'words target' });
  m.rowNames.forEach((name, i) => line.append(word(name, {
    'data-row': i, class: i === row ? 'now' : i > row ? 'later' : null,
    onclick: () => set({ step: i }),
  })));
  return line;
}

function probable(step) {
  const table = el('table', { class: 'top' });
  for (const [token, p] of step?.topk ?? []) {
    const bar = el('div', { class: 'bar' });
    bar.style.width = `${100 * p}%`;
    table.append(el('tr', { class: token === step.token ? 'written' : null },
      el('td', {}, word(shown(token))),
      el('td', {}, bar),
      el('td', { 'data-p': p }, p.toFixed(3))));
  }
  return table;
}

const EVERY = 900;  // milliseconds between two steps of Play

// A button that advances step by step until the last step, or until the user presses it again. At
// the last step it starts from the first. It stops when its view is no longer shown.
function playButton(at, rows, go) {
  let timer = null;
  const node = el('button', { type: 'button', class: 'play' });
  const name = () => {
    node.textContent = timer ? 'Pause' : 'Play';
  };
  const stop = () => {
    clearTimeout(timer);
    timer = null;
    name();
  };
  const next = () => {
    if (!node.isConnected) return stop();
    go(at() + 1);
    if (at() >= rows - 1) return stop();
    timer = setTimeout(next, EVERY);
    return undefined;
  };
  node.addEventListener('click', () => {
    if (timer) return stop();
    if (at() >= rows - 1) go(0);
    timer = setTimeout(next, EVERY);
    return name();
  });
  name();
  return { node, stop };
}

// The slider is built once, so that the user can drag it; `show(row)` updates it.
function slider(rows) {
  const go = (to) => set({ step: Math.max(0, Math.min(rows - 1, to)) });
  const at = () => Number(input.value);
  const play = playButton(() => at(), rows, go);
  const choose = (to) => {
    play.stop();
    go(to);
  };
  const input = el('input', { type: 'range', class: 'step', min: 0, max: rows - 1,
    'aria-label': 'Step', oninput: () => choose(at()) });
  const button = (text, label, by) => el('button', { type: 'button', 'aria-label': label,
    title: label, onclick: () => choose(at() + by) }, text);
  const count = el('span');
  return {
    node: el('div', { class: 'steps wide' }, play.node, button('‹', 'One step back', -1), input,
      button('›', 'One step on', 1), count),
    show(row) {
      input.value = row;
      count.textContent = `step ${row + 1} of ${rows}`;
    },
  };
}

// Scrolls a box so that one of its nodes is in the middle. Does not scroll the page.
function showIn(box, node) {
  const outer = box.getBoundingClientRect();
  const inner = node.getBoundingClientRect();
  box.scrollTop += inner.top + inner.height / 2 - outer.top - outer.height / 2;
  box.scrollLeft += inner.left + inner.width / 2 - outer.left - outer.width / 2;
}

// The width of the first column, which on a narrow screen is the only one.
const columnOf = (body) => parseFloat(getComputedStyle(body).gridTemplateColumns);

function fill(body, { m, sentence, row }) {
  const weights = m.colNames.map((_, j) => m.at(row, j));
  const source = sourceWords(m, row);
  const target = targetWords(m, row);
  const drawing = drawMechanism({
    weights, names: m.colNames, series: sentence.series, row, rows: m.rows, room: columnOf(body),
    full: fullOf(m.weights, choices(sentence)?.values),
  });
  const chart = el('div', { class: 'scroll' }, drawing);
  body.replaceChildren(
    el('div', {}, el('h2', {}, 'The model reads'), source,
      el('h2', {}, 'and writes'), target,
      el('h2', {}, `Weights of this step (${m.mechanism})`), chart,
      el('p', { class: 'note' }, sentence.mechanism.note)),
    el('div', {}, el('h2', {}, 'Next-token probabilities'), probable(sentence.steps[row])));
  const most = largest(m, row);
  showIn(source, source.children[most]);
  showIn(target, target.children[row]);
  showIn(chart, drawing.querySelectorAll('.weight')[most]);
  return { source, drawing };
}

function mark(source, col) {
  for (const node of source.children) node.classList.toggle('on', Number(node.dataset.col) === col);
}

export const view = {
  id: 'player',
  steps: true,  // ← → choose a step
  title: 'Step by step',
  tools: ['layer', 'head'],
  draw(stage, { sentence, state }) {
    const choice = fitted(sentence, { ...state, kind: 'cross', unit: 'pieces' });
    const m = matrix(sentence, choice);
    const steps = slider(m.rows);
    const body = el('div', { class: 'player' });
    const drawn = { m, choice, point: ({ col }) => mark(drawn.source, col) };
    drawn.step = (step) => {
      const row = Math.max(0, Math.min(m.rows - 1, step));
      steps.show(row);
      Object.assign(drawn, fill(body, { m, sentence, row }));
    };
    stage.append(steps.node, body);
    drawn.step(state.step);
    return drawn;
  },
};
