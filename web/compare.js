// Two models, or two sentences, side by side.

import { el } from './dom.js';
import { fitted, matrix, read } from './attention.js';
import { difference, placed } from './difference.js';
import { heatmap } from './map.js';
import { translate } from './service.js';
import { point, set } from './state.js';

function panel(title, text, drawing) {
  return el('div', {}, el('h2', {}, title), el('p', { dir: 'auto' }, text), drawing);
}

const none = () => el('p', { class: 'note' }, 'This model has no attention to show.');
const titleOf = (model, m) => (m ? `${model.name} (${m.mechanism})` : model.name);

// The input field of the second sentence. If it is empty, both sentences are the same.
function field(state) {
  return el('input', {
    id: 'second', value: state.second, dir: 'auto', spellcheck: 'false', maxlength: 5000,
    placeholder: 'the same',
    onchange: (event) => set({ second: event.target.value.trim() }),
  });
}

async function ask(other, state, number) {
  const reply = await translate(state.second || state.text.trim(), other);
  const found = reply.attention[state.second ? 0 : number];
  const sentence = found && read(found);
  const m = sentence?.maps.length > 0 ? matrix(sentence, fitted(sentence, state)) : null;
  return { m, text: sentence?.target.text ?? reply.translatedText };
}

// Both maps, linked by words: the page marks and reads out the same word in both.
function linked(maps, names, { room, gamma }) {
  const d = difference(...maps);
  const drawings = maps.map((m, side) => heatmap(m, { room, gamma,
    tell: (row, col) => point(placed(d.rowPairs, side, row), placed(d.colPairs, side, col)) }));
  const at = (pairs, i, side) => (i === null ? null : pairs[i]?.[side] ?? null);
  const weight = (side, row, col) => {
    const [i, j] = [at(d.rowPairs, row, side), at(d.colPairs, col, side)];
    return i === null || j === null ? '–' : maps[side].at(i, j).toFixed(3);
  };
  return {
    drawings, read: d,
    value: (row, col) => `: ${names[0]} ${weight(0, row, col)}, ${names[1]} ${weight(1, row, col)}`,
    point: ({ row, col }) => drawings.forEach((drawing, side) => drawing.mark(
      at(d.rowPairs, row, side), at(d.colPairs, col, side))),
  };
}

export const view = {
  id: 'compare',
  title: 'Compare',
  asks: true,  // needs the server: another model translates
  bare: true,  // one of the models may have no attention
  tools: ['kind', 'layer', 'head', 'unit', 'gamma', 'other'],
  draw(stage, { m, sentence, state, model, other, again }) {
    const room = Math.max(320, (stage.clientWidth - 60) / 2);
    const { gamma } = state;
    const alone = m && heatmap(m, { room, gamma });
    const drawn = alone ? { drawing: alone, point: ({ row, col }) => alone.mark(row, col) } : {};
    const pair = el('div', { class: 'pair' },
      panel(titleOf(model, m), sentence.target.text, alone ?? none()));
    stage.append(el('label', { class: 'second' }, 'Second sentence ', field(state)), pair);
    if (other === model && !state.second)
      stage.append(el('p', { class: 'note' }, 'Type another sentence, or choose another model. '
        + 'fovea serve can serve several models.'));
    ask(other, state, sentence.number).then((second) => {
      const names = state.second ? ['first', 'second'] : [model.name, other.name];
      const both = m && second.m && linked([m, second.m], names, { room, gamma });
      const one = second.m && !both ? heatmap(second.m, { room, gamma, live: false }) : none();
      if (both) {
        alone.replaceWith(both.drawings[0]);
        Object.assign(drawn, both, { drawing: both.drawings });
      }
      pair.append(panel(titleOf(other, second.m), second.text, both?.drawings[1] ?? one));
      again();
    }).catch((error) => pair.append(el('p', { class: 'note' }, error.message)));
    return drawn;
  },
};
