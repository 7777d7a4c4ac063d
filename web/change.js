// Changes of a translation: masked words, muted heads, steps with forced attention, a forced
// beginning, an edited source. The state of the page contains all of them.

import { el, word } from './dom.js';
import { KIND_NAMES, read, shown } from './attention.js';
import { translate } from './service.js';
import { set } from './state.js';

export const UNCHANGED = { edit: '', mask: '', mute: '', force: '', prefix: '' };

const list = (text) => text.split(',').filter((part) => part !== '');

// state.mask: "2,4"; state.mute: "cross.0.1"; state.force: "step.word.layer.head", −1 means all;
// state.prefix: pieces separated by blanks.
export function changes(state) {
  const numbers = (text) => text.split('.').map(Number);
  return {
    text: state.edit,
    masked: list(state.mask).map(Number).filter(Number.isInteger),
    silent: list(state.mute).map((one) => {
      const [kind, layer, head] = one.split('.');
      return { kind, layer: Number(layer), head: Number(head) };
    }),
    forced: list(state.force).map((one) => {
      const [step, at, layer, head] = numbers(one);
      return { step, word: at, layer: layer ?? -1, head: head ?? -1 };
    }),
    prefix: state.prefix.split(' ').filter((piece) => piece !== ''),
  };
}

export const isChanged = (state) => Object.keys(UNCHANGED).some((name) => state[name] !== '');

// The fields of a request.
function fields({ masked, silent, forced, prefix }) {
  const wanted = {};
  if (masked.length > 0) wanted.mask_words = masked;
  if (silent.length > 0) wanted.mask_heads = silent;
  if (forced.length > 0)
    wanted.force_attention = forced.map(({ step, word: at, layer, head }) => ({
      step, word: at, ...(layer < 0 ? {} : { layer }), ...(head < 0 ? {} : { head }) }));
  if (prefix.length > 0) wanted.prefix = prefix;
  return wanted;
}

// The sentence translated with these changes.
export async function changed(sentence, model, change) {
  const reply = await translate(change.text || sentence.source.text, model, fields(change));
  if (reply.attention.length !== 1) throw new Error('What if? takes one sentence at a time.');
  return read(reply.attention[0]);
}

const toggled = (all, one) => (all.includes(one) ? all.filter((x) => x !== one) : [...all, one]);

export function toggleMask(state, at) {
  const all = toggled(changes(state).masked, at).sort((a, b) => a - b);
  set({ mask: all.join(',') });
}

export function toggleHead(state, name) {
  set({ mute: toggled(list(state.mute), name).join(',') });
}

// Makes the steps first … end − 1 attend to the word. Earlier forced steps stay. Later ones are
// removed, because they belonged to other words. A second call with the same arguments undoes it.
export function force(state, sentence, { first, end, at, layer, head }) {
  const name = (step) => [step, at, layer, head].join('.');
  const earlier = list(state.force).filter((one) => Number(one.split('.')[0]) < first);
  if (list(state.force).includes(name(first))) return set({ force: earlier.join(',') });
  const steps = [];
  for (let step = first; step < end; ++step) steps.push(name(step));
  return set({
    force: [...earlier, ...steps].join(','),
    prefix: sentence.target.tokens.slice(0, first).join(' '),
  });
}

export function begin(pieces) {
  set({ prefix: pieces.join(' '), force: '' });
}

// A button for each change. A click undoes the change.
export function changeList(state, sentence) {
  const now = changes(state);
  const names = sentence.source.words;
  const chip = (text, name, act) => el('button', { type: 'button', title: 'Undo',
    onclick: act }, text, name === null ? null : word(name), ' ×');
  const line = el('div', { class: 'changes', 'aria-label': 'Changes' });
  if (now.text) line.append(chip('Source: ', now.text, () => set({ edit: '' })));
  for (const at of now.masked)
    line.append(chip('Masked: ', names[at] ?? String(at), () => toggleMask(state, at)));
  for (const { kind, layer, head } of now.silent)
    line.append(chip(`Muted: ${KIND_NAMES[kind] ?? kind}, layer ${layer + 1}, head ${head + 1}`,
      null, () => toggleHead(state, `${kind}.${layer}.${head}`)));
  for (const { step, word: at } of now.forced)
    line.append(chip(`Step ${step + 1} attends to `, names[at] ?? String(at), () => set({
      force: list(state.force).filter((one) => Number(one.split('.')[0]) !== step).join(',') })));
  if (now.prefix.length > 0)
    line.append(chip('Start: ', now.prefix.map(shown).join(' '),
      () => set({ prefix: '', force: '' })));
  if (line.children.length > 1)
    line.append(el('button', { type: 'button', class: 'all', onclick: () => set(UNCHANGED) },
      'Reset'));
  return line;
}
