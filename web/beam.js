// Search: every hypothesis that beam search kept at a step, with the winner in bold. Pointing at a
// hypothesis shows what it attended to. A click makes the translation begin with it.

import { el, svg, widthOf } from './dom.js';
import { begin, changed, changeList, changes, isChanged } from './change.js';
import { fitted, matrix, shown } from './attention.js';
import { heatmap } from './map.js';
import { recorded } from './service.js';

const LINE = 24;
const GAP = 34;  // between two steps: curves turn only here
const LAST = 10;  // pieces of a hypothesis in its title
const FONT = 'bold 12px system-ui, sans-serif';
const room = (one) => widthOf(shown(one.token), FONT);
const said = (one) => `${one.score.toFixed(1)}${one.rank === undefined ? '' : ` #${one.rank + 1}`}`;
const labelWidth = (one) => room(one) + 7 + widthOf(said(one), FONT);

// Nodes with their children, below the start of the sentence (id 0).
function grow(list) {
  const nodes = new Map([[0, { id: 0, step: 0, token: '<s>', score: 0, children: [] }]]);
  for (const one of list) nodes.set(one.id, { ...one, children: [] });
  for (const one of nodes.values())
    if (one.id !== 0) {
      one.above = nodes.get(one.parent);
      one.above.children.push(one);
    }
  const best = [...nodes.values()].find((one) => one.rank === 0);
  for (let one = best; one; one = one.above) one.won = true;
  return [...nodes.values()];
}

// The winner is alone on the top line. Other children get the line of their parent and the first
// free lines below the winner; a better child gets a higher line. After a hypothesis ends, its line
// stays empty for one step, so that the next hypothesis does not look like its continuation.
function lines(steps) {
  steps[0][0].line = 0;
  for (const nodes of steps.slice(0, -1)) {
    const taken = new Set([0, ...nodes.map((one) => one.line)]);
    for (const one of [...nodes].sort((a, b) => a.line - b.line)) {
      const own = [one.line];
      for (let line = 0; own.length < one.children.length; ++line)
        if (!taken.has(line)) own.push(line);
      for (const line of own) taken.add(line);
      own.sort((a, b) => a - b);
      one.children.forEach((child, i) => { child.line = own[i]; });
    }
  }
}

// Steps are columns. A column is as wide as its longest label.
function arrange(nodes) {
  const steps = [];
  for (const one of nodes) {
    (steps[one.step] ??= []).push(one);
    one.children.sort((a, b) => Boolean(b.won) - Boolean(a.won) || b.score - a.score);
  }
  lines(steps);
  let left = 12;
  for (const column of steps) {
    const end = left + Math.max(...column.map(labelWidth));
    for (const one of column) Object.assign(one, { x: left, end, y: 20 + one.line * LINE });
    left = end + GAP;
  }
  const lowest = Math.max(...nodes.map((one) => one.y));
  return { width: left - GAP + 12, height: lowest + LINE };
}

// A straight line to the end of the column, so that it crosses no label, and a curve to the child.
function edge(one) {
  const { above } = one;
  const turn = above.end + 6;
  const middle = (turn + one.x) / 2;
  return svg('path', {
    d: `M${above.x + labelWidth(above) + 5} ${above.y}L${turn} ${above.y}`
      + `C${middle} ${above.y} ${middle} ${one.y} ${one.x - 4} ${one.y}`,
    class: one.won ? 'won' : null,
  });
}

// The pieces from the start to this node, without </s>.
function path(one) {
  const pieces = [];
  for (let at = one; at.above; at = at.above) if (!at.finished) pieces.unshift(at.token);
  return pieces;
}

function node(one, pinned, show) {
  const label = svg('text', { x: one.x, y: one.y + 4 }, shown(one.token));
  const choose = () => { if (!recorded) begin(path(one)); };
  const forced = one.step > 0 && one.step <= pinned;
  return svg('g', {
    class: `${one.won ? 'won' : 'lost'}${forced ? ' forced' : ''}`, 'data-id': one.id,
    'data-score': one.score, tabindex: 0, role: 'button',
    'aria-label': `${one.token}: begin with it`, onclick: choose,
    onkeydown: (event) => { if (event.key === 'Enter') choose(); },
    onmouseenter: () => show(one), onfocus: () => show(one),
  }, svg('title', {}, `log p = ${one.score.toFixed(3)}${recorded ? '' : '; click: begin with it'}`),
    label,
    svg('text', { x: one.x + room(one) + 7, y: one.y + 4, class: 'soft' },
      said(one)));
}

// The rows of the pieces of this hypothesis, from any translation that begins with it.
function rowsOf(sentence, state, count) {
  const m = matrix(sentence, { ...fitted(sentence, { ...state, kind: 'cross' }), unit: 'pieces' });
  const rows = Math.min(count, m.rows);
  return { ...m, rows, rowNames: m.rowNames.slice(0, rows),
    weights: m.weights.slice(0, rows * m.cols) };
}

// The map of a hypothesis. Its last row, that of the piece itself, and the names of the columns are
// visible.
function drawMap(box, one, m, { room: wide, gamma }) {
  const tall = box.clientHeight;
  const cell = Math.max(16, Math.min(34, Math.floor((tall - 130) / m.rows)));
  const drawing = heatmap(m, { room: wide, gamma, cell, tell: null, sticks: true });
  const frame = el('div', { class: 'frame' }, drawing);
  frame.addEventListener('scroll', () => drawing.follow(frame.scrollLeft, frame.scrollTop));
  const pieces = path(one).map(shown);
  const last = pieces.length > LAST ? ['…', ...pieces.slice(-LAST)] : pieces;
  box.dataset.id = one.id;
  box.replaceChildren(el('h2', { title: pieces.join(' ') },
    `What ${last.join(' ') || '</s>'} attended to`), frame);
  frame.scrollTop = frame.scrollHeight;
}

// The map of a hypothesis above the tree, in a box of constant height, so that the tree does not
// move under the mouse. It appears after a delay, because the mouse crosses many hypotheses.
function hoverMap(box, { sentence, state, model, room: wide }) {
  let latest = 0;
  return (one) => {
    const turn = ++latest;
    if (one.step === 0 || sentence.maps.length === 0 || (recorded && !one.won)) return;
    const draw = (found) => {
      if (turn !== latest) return;
      drawMap(box, one, rowsOf(found, state, one.step), { room: wide, gamma: state.gamma });
    };
    if (one.won) return draw(sentence);
    setTimeout(() => {
      if (turn !== latest) return;
      changed(sentence, model, { ...changes(state), prefix: path(one) }).then(draw, (error) => {
        if (turn === latest) box.replaceChildren(el('p', { class: 'note' }, error.message));
      });
    }, 150);
    return undefined;
  };
}

function tree(box, sentence, { state, model, room: wide }) {
  const nodes = grow(sentence.beam);
  const { width, height } = arrange(nodes);
  const map = el('div', { class: 'hover-map' });
  const show = hoverMap(map, { sentence, state, model, room: wide });
  const pinned = changes(state).prefix.length;
  const drawing = svg('svg', {
    width, height, viewBox: `0 0 ${width} ${height}`, class: 'tree', role: 'figure',
    'aria-label': 'Beam search',
  }, nodes.filter((one) => one.above).map(edge), nodes.map((one) => node(one, pinned, show)));
  box.replaceChildren(changeList(state, sentence));
  if (isChanged(state))
    box.append(el('p', { class: 'said now', dir: 'auto' }, el('b', {}, 'now'), ' ',
      sentence.target.text));
  const attends = sentence.maps.length > 0;
  const note = 'The hypotheses that the beam search kept at each step, with their log-probability '
    + '(natural logarithm) so far. The thick path won; # is the rank of a finished hypothesis.'
    + (attends ? ` Point at a piece to see what ${recorded ? 'the winner' : 'its hypothesis'} `
      + 'attended to.' : '') + (recorded ? '' : ' Click a piece to start the translation with it.');
  box.append(attends ? map : '', el('div', { class: 'scroll' }, drawing),
    el('p', { class: 'note' }, note));
  const best = nodes.find((one) => one.rank === 0);
  if (best) show(best);
  box.dataset.state = 'done';
  return drawing;
}

export const view = {
  id: 'beam',
  bare: true,  // a model without attention also has a search
  changes: true,  // this view shows changes
  title: 'Search',
  hint: 'Point at a word of the tree to see its attention. Click it to begin with it.',
  tools: ['layer', 'head', 'gamma'],
  draw(stage, { sentence, state, model }) {
    if (!sentence.beam?.length) {
      stage.append(el('p', { class: 'note' }, 'There is no search to show: '
        + 'the translation was given, or the server did not send its search.'));
      return { hint: '' };
    }
    const box = el('div', { class: 'search', 'data-state': 'waiting' });
    stage.append(box);
    const about = { state, model, room: stage.clientWidth - 40 };
    const drawn = {};
    const show = (found) => {
      const choice = fitted(found, { ...state, kind: 'cross' });
      Object.assign(drawn, { sentence: found, choice, m: matrix(found, choice),
        drawing: tree(box, found, about) });
    };
    if (!isChanged(state)) {
      show(sentence);
      return drawn;
    }
    changed(sentence, model, changes(state)).then(show, (error) => {
      box.replaceChildren(changeList(state, sentence), el('p', { class: 'note', role: 'alert' },
        error.message));
      box.dataset.state = 'failed';
    });
    return drawn;
  },
};
