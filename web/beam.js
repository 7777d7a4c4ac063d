// The search: every hypothesis that was kept at a step, the winner thick. Pointing at one shows
// what it looked at, a click makes the translation begin with it.

import { el, svg, widthOf } from './dom.js';
import { begin, changed, changeList, changes, isChanged } from './change.js';
import { fitted, matrix, shown } from './attention.js';
import { heatmap } from './map.js';
import { recorded } from './service.js';

const LINE = 24;
const room = (one) => widthOf(shown(one.token), 'bold 12px system-ui, sans-serif');

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

// Each leaf has a line of its own; a node stands beside its first child, the winner's on top.
function arrange(nodes) {
  let line = 0;
  const widths = [];
  const place = (one) => {
    widths[one.step] = Math.max(widths[one.step] ?? 0, room(one) + 48);
    one.children.sort((a, b) => Boolean(b.won) - Boolean(a.won) || b.score - a.score);
    if (one.children.length === 0) one.line = line++;
    else one.children.forEach(place);
    one.line ??= one.children[0].line;
  };
  place(nodes[0]);
  const left = [12];
  for (const width of widths) left.push(left.at(-1) + width + 26);
  for (const one of nodes) Object.assign(one, { x: left[one.step], y: 20 + one.line * LINE });
  return { width: left.at(-1), height: 24 + line * LINE };
}

function edge(one) {
  const from = one.above.x + room(one.above) + 42;
  const middle = (from + one.x) / 2;
  return svg('path', {
    d: `M${from} ${one.above.y}C${middle} ${one.above.y} ${middle} ${one.y} ${one.x - 4} ${one.y}`,
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
  const rank = one.rank === undefined ? '' : ` #${one.rank + 1}`;
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
      `${one.score.toFixed(1)}${rank}`));
}

// The rows that this hypothesis has written, taken from any translation that begins with it.
function rowsOf(sentence, state, count) {
  const m = matrix(sentence, { ...fitted(sentence, { ...state, kind: 'cross' }), unit: 'pieces' });
  const rows = Math.min(count, m.rows);
  return { ...m, rows, rowNames: m.rowNames.slice(0, rows),
    weights: m.weights.slice(0, rows * m.cols) };
}

// What a hypothesis looked at, below the tree. The mouse must rest a moment: it crosses many.
function hoverMap(box, { sentence, state, model, room }) {
  let latest = 0;
  return (one) => {
    const turn = ++latest;
    if (one.step === 0 || sentence.maps.length === 0 || (recorded && !one.won)) return;
    const draw = (found) => {
      if (turn !== latest) return;
      const m = rowsOf(found, state, one.step);
      box.dataset.id = one.id;
      const said = path(one).map(shown).join(' ') || '</s>';
      box.replaceChildren(el('h2', {}, `What ${said} looked at`),
        heatmap(m, { room, gamma: state.gamma, cell: 34, tell: null }));
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

function tree(box, sentence, { state, model, room }) {
  const nodes = grow(sentence.beam);
  const { width, height } = arrange(nodes);
  const map = el('div', { class: 'hover-map' });
  const show = hoverMap(map, { sentence, state, model, room });
  const pinned = changes(state).prefix.length;
  const drawing = svg('svg', {
    width, height, viewBox: `0 0 ${width} ${height}`, class: 'tree', role: 'figure',
    'aria-label': 'Beam search',
  }, nodes.filter((one) => one.above).map(edge), nodes.map((one) => node(one, pinned, show)));
  box.replaceChildren(changeList(state, sentence));
  if (isChanged(state))
    box.append(el('p', { class: 'said now', dir: 'auto' }, el('b', {}, 'now'), ' ',
      sentence.target.text));
  box.append(el('div', { class: 'scroll' }, drawing), el('p', { class: 'note' }, 'What the beam '
    + 'search kept at each step, with the log-probability so far. The thick path won; # is the '
    + 'rank of what was finished. Point at a piece to see what that hypothesis looked at'
    + `${recorded ? ', where it won.' : ', click it to begin with it.'}`), map);
  box.dataset.state = 'done';
  return drawing;
}

export const view = {
  id: 'beam',
  bare: true,  // a model without attention searches, too
  changes: true,  // shows them
  title: 'Search',
  tools: ['layer', 'head', 'gamma'],
  draw(stage, { sentence, state, model }) {
    if (!sentence.beam?.length) {
      stage.append(el('p', { class: 'note' }, 'Nothing is known of a search: '
        + 'the translation was given, or the server does not tell.'));
      return {};
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
