// The same sentence, two models beside each other.

import { el } from './dom.js';
import { heads, kinds, layers, matrix, read } from './attention.js';
import { heatmap } from './map.js';
import { translate } from './service.js';

// A layer or head that the other model lacks becomes the mean.
function closest(sentence, state) {
  const kind = kinds(sentence).includes(state.kind) ? state.kind : kinds(sentence)[0];
  return {
    kind, unit: state.unit,
    layer: layers(sentence, kind).includes(state.layer) ? state.layer : -1,
    head: heads(sentence, kind).includes(state.head) ? state.head : -1,
  };
}

function panel(title, text, drawing) {
  return el('div', {}, el('h2', {}, title), el('p', { dir: 'auto' }, text), drawing);
}

async function ask(page, state, room) {
  const fallback = page.models.filter((m) => m.source === page.models[0].source).at(-1);
  const other = page.models.find((m) => m.name === state.other) ?? fallback;
  const reply = await translate(state.text.trim(), other);
  const sentence = reply.attention.filter((s) => s.attention.length > 0).map(read)[state.sentence];
  if (!sentence) throw new Error(`${other.name} has no attention to show`);
  const m = matrix(sentence, closest(sentence, state));
  return panel(`${other.name} (${m.mechanism})`, sentence.target.text,
    heatmap(m, { room, gamma: state.gamma, live: false }));
}

export const view = {
  id: 'compare',
  title: 'Compare',
  tools: ['kind', 'layer', 'head', 'unit', 'gamma', 'other'],
  draw(stage, { m, sentence, state, page }) {
    const room = Math.max(320, (stage.clientWidth - 60) / 2);
    const drawing = heatmap(m, { room, gamma: state.gamma });
    const name = state.model || page.models[0].name;
    const pair = el('div', { class: 'pair' },
      panel(`${name} (${m.mechanism})`, sentence.target.text, drawing));
    stage.append(pair);
    ask(page, state, room).then((second) => pair.append(second),
      (error) => pair.append(el('p', { class: 'note' }, error.message)));
    const mark = ({ row, col }) => {
      for (const map of pair.querySelectorAll('.heat-map')) map.mark(row, col);
    };
    return { drawing, point: mark };
  },
};
