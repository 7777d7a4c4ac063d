// The same sentence, two models beside each other.

import { el } from './dom.js';
import { fitted, matrix, read } from './attention.js';
import { heatmap } from './map.js';
import { translate } from './service.js';

function panel(title, text, drawing) {
  return el('div', {}, el('h2', {}, title), el('p', { dir: 'auto' }, text), drawing);
}

async function ask(other, state, room) {
  const reply = await translate(state.text.trim(), other);
  const sentence = reply.attention.filter((s) => s.attention.length > 0).map(read)[state.sentence];
  if (!sentence) throw new Error(`${other.name} has no attention to show`);
  const m = matrix(sentence, fitted(sentence, state));
  return panel(`${other.name} (${m.mechanism})`, sentence.target.text,
    heatmap(m, { room, gamma: state.gamma, live: false }));
}

export const view = {
  id: 'compare',
  title: 'Compare',
  tools: ['kind', 'layer', 'head', 'unit', 'gamma', 'other'],
  draw(stage, { m, sentence, state, model, other }) {
    const room = Math.max(320, (stage.clientWidth - 60) / 2);
    const drawing = heatmap(m, { room, gamma: state.gamma });
    const pair = el('div', { class: 'pair' },
      panel(`${model.name} (${m.mechanism})`, sentence.target.text, drawing));
    stage.append(pair);
    if (other === model)
      stage.append(el('p', { class: 'note' }, 'Choose another model; fovea serve takes several.'));
    ask(other, state, room).then((second) => pair.append(second),
      (error) => pair.append(el('p', { class: 'note' }, error.message)));
    const mark = ({ row, col }) => {
      for (const map of pair.querySelectorAll('.heat-map')) map.mark(row, col);
    };
    return { drawing, point: mark };
  },
};
