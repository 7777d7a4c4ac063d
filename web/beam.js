// The search: every hypothesis that was kept at a step, the winner thick.

import { el, svg, widthOf } from './dom.js';
import { shown } from './attention.js';

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

function node(one) {
  const rank = one.rank === undefined ? '' : ` #${one.rank + 1}`;
  const label = svg('text', { x: one.x, y: one.y + 4 }, shown(one.token));
  return svg('g', { class: one.won ? 'won' : 'lost', 'data-id': one.id, 'data-score': one.score },
    svg('title', {}, `log p = ${one.score.toFixed(3)}`), label,
    svg('text', { x: one.x + room(one) + 7, y: one.y + 4, class: 'soft' },
      `${one.score.toFixed(1)}${rank}`));
}

export const view = {
  id: 'beam',
  title: 'Search',
  tools: [],
  draw(stage, { sentence }) {
    if (!sentence.beam?.length) {
      stage.append(el('p', { class: 'note' }, 'This server does not tell how it searched.'));
      return {};
    }
    const nodes = grow(sentence.beam);
    const { width, height } = arrange(nodes);
    const drawing = svg('svg', {
      width, height, viewBox: `0 0 ${width} ${height}`, class: 'tree', role: 'figure',
      'aria-label': 'Beam search',
    }, nodes.filter((one) => one.above).map(edge), nodes.map(node));
    stage.append(drawing, el('p', { class: 'note' }, 'What the beam search kept at each step, with '
      + 'the log-probability so far. The thick path won; # is the rank of what was finished.'));
    return { drawing };
  },
};
