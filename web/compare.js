// Two models, or two sentences, beside each other.

import { el } from './dom.js';
import { fitted, matrix, read } from './attention.js';
import { heatmap } from './map.js';
import { translate } from './service.js';
import { set } from './state.js';

function panel(title, text, drawing) {
  return el('div', {}, el('h2', {}, title), el('p', { dir: 'auto' }, text), drawing);
}

// The second sentence; nothing stands for the same as the first.
function field(state) {
  return el('input', {
    id: 'second', value: state.second, dir: 'auto', spellcheck: 'false', maxlength: 5000,
    placeholder: 'the same',
    onchange: (event) => set({ second: event.target.value.trim() }),
  });
}

async function ask(other, state, room) {
  const reply = await translate(state.second || state.text.trim(), other);
  const found = reply.attention.filter((s) => s.attention.length > 0).map(read);
  const sentence = found[state.second ? 0 : state.sentence];
  if (!sentence)
    return panel(other.name, reply.translatedText,
      el('p', { class: 'note' }, 'This model has no attention to show.'));
  const m = matrix(sentence, fitted(sentence, state));
  return panel(`${other.name} (${m.mechanism})`, sentence.target.text,
    heatmap(m, { room, gamma: state.gamma, live: false }));
}

export const view = {
  id: 'compare',
  title: 'Compare',
  asks: true,  // the server, about another model
  tools: ['kind', 'layer', 'head', 'unit', 'gamma', 'other'],
  draw(stage, { m, sentence, state, model, other }) {
    const room = Math.max(320, (stage.clientWidth - 60) / 2);
    const drawing = heatmap(m, { room, gamma: state.gamma });
    const pair = el('div', { class: 'pair' },
      panel(`${model.name} (${m.mechanism})`, sentence.target.text, drawing));
    stage.append(el('label', { class: 'second' }, 'Second sentence ', field(state)), pair);
    if (other === model && !state.second)
      stage.append(el('p', { class: 'note' }, 'Type another sentence, or choose another model; '
        + 'fovea serve takes several.'));
    ask(other, state, room).then((second) => pair.append(second),
      (error) => pair.append(el('p', { class: 'note' }, error.message)));
    const mark = ({ row, col }) => {
      for (const map of pair.querySelectorAll('.heat-map')) map.mark(row, col);
    };
    return { drawing, point: mark };
  },
};
