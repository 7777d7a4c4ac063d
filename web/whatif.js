// What if? The changed sentence next to the original: words masked or edited, heads muted, the
// attention of a step forced.

import { el, word } from './dom.js';
import { diverging } from './colours.js';
import { fitted, heads, layers, matrix } from './attention.js';
import {
  changed, changeList, changes, force, isChanged, toggleHead, toggleMask,
} from './change.js';
import { difference, placed } from './difference.js';
import { cellOf, heatmap } from './map.js';
import { point, set, state as live } from './state.js';

// The selector of the element that a key has activated. It gets the focus back after the redraw.
let focused = '';
const focus = (event, selector) => { focused = event.detail === 0 ? selector : ''; };

const shortcut = (event) => !event.ctrlKey && !event.metaKey && !event.altKey;

const SCRIPTS = ['Han', 'Hiragana', 'Katakana', 'Thai', 'Lao', 'Khmer', 'Myanmar'];
const UNSPACED = new RegExp(
  `[${SCRIPTS.map((name) => `\\p{Script=${name}}`).join('')}、。，！？；：（）「」『』《》]`, 'u');

// The words as one text, without blanks between words of scripts that are written without them.
const joined = (words) => words.filter((word) => word !== '').reduce((text, word) => {
  const touch = UNSPACED.test([...text].at(-1) ?? '') && UNSPACED.test([...word][0]);
  return `${text}${text === '' || touch ? '' : ' '}${word}`;
}, '');

// An input field instead of a word. Enter translates the sentence with its content.
function edit(node, words, at) {
  const field = el('input', { class: 'edit', value: words[at], dir: 'auto', spellcheck: 'false',
    'aria-label': `Instead of ${words[at]}`, size: Math.max(4, words[at].length) });
  let open = true;
  const close = (keep) => {
    if (!open) return;
    open = false;
    const text = joined(words.map((name, i) => (i === at ? field.value.trim() : name)));
    const other = text !== '' && field.value.trim() !== words[at];
    if (keep && other) return set({ edit: text, mask: '', force: '', prefix: '' });
    focused = '';
    const had = document.activeElement === field;
    field.replaceWith(node);
    return had ? node.focus() : undefined;
  };
  field.addEventListener('keydown', (event) => {
    event.stopPropagation();
    if (event.key === 'Enter') close(true);
    if (event.key === 'Escape') close(false);
  });
  field.addEventListener('blur', () => close(true));
  node.replaceWith(field);
  field.focus();
  field.select();
}

// The source words, each a button: a click masks the word, a double click edits it.
function sourceWords(sentence, state, look) {
  const { masked } = changes(state);
  const line = el('div', { class: 'words mask', role: 'group', 'aria-label': 'Words to mask' });
  const words = sentence.source.words.slice(0, -1);
  sentence.source.words.forEach((name, at) => {
    const node = el('button', {
      type: 'button', 'data-word': at, class: masked.includes(at) ? 'masked' : null,
      'aria-pressed': masked.includes(at),
      title: `Click: mask it.${at < words.length ? ' Double click: edit it.' : ''}`,
      onclick: (event) => {
        if (event.detail > 1) return;  // the second click of a double click
        focus(event, `[data-word="${at}"]`);
        clearTimeout(line.later);
        line.later = setTimeout(() => toggleMask(state, at), event.detail === 0 ? 0 : 220);
      },
      ondblclick: () => {
        clearTimeout(line.later);
        if (at < words.length) edit(node, words, at);
      },
      onkeydown: (event) => {
        if (!shortcut(event)) return;
        if (event.key !== 'f' && !(event.key === 'e' && at < words.length)) return;
        event.preventDefault();
        focus(event, `[data-word="${at}"]`);
        if (event.key === 'e') edit(node, words, at);
        else look(live.step, at);
      },
      onmouseenter: () => line.point?.(at), onmouseleave: () => line.point?.(null),
    }, word(name));
    line.append(node);
  });
  return line;
}

function headButtons(sentence, state) {
  const { silent } = changes(state);
  const columns = heads(sentence, state.kind);
  const table = el('div', { class: 'mute', role: 'group', 'aria-label': 'Heads to mute' });
  table.style.gridTemplateColumns = `auto repeat(${columns.length}, auto)`;
  for (const layer of layers(sentence, state.kind)) {
    table.append(el('span', { class: 'name' }, `layer ${layer + 1}`));
    for (const head of columns) {
      const off = silent.some((one) => one.kind === state.kind && one.layer === layer
        && one.head === head);
      table.append(el('button', {
        type: 'button', class: off ? 'masked' : null, 'aria-pressed': off,
        'data-head': `${state.kind}.${layer}.${head}`,
        'aria-label': `Mute layer ${layer + 1}, head ${head + 1}`,
        onclick: (event) => {
          focus(event, `[data-head="${state.kind}.${layer}.${head}"]`);
          toggleHead(state, `${state.kind}.${layer}.${head}`);
        },
      }, String(head + 1)));
    }
  }
  return table;
}

// A translation, in which the words that the other translation does not have are marked.
function translation(title, sentence, pairs, side, other) {
  const line = el('p', { class: `said ${side === 0 ? 'before' : 'now'}`, dir: 'auto' },
    el('b', {}, title));
  const words = sentence.target.words.slice(0, -1);
  words.forEach((name, at) => {
    const pair = pairs.find((one) => one[side] === at);
    const twin = pair[1 - side];
    const differs = twin === null || other.target.words[twin] !== name;
    line.append(' ', differs ? el(side === 0 ? 'del' : 'ins', {}, word(name)) : word(name));
  });
  return line;
}

function panel(name, title, drawing) {
  return el('div', { class: name }, el('h2', {}, title), drawing);
}

// One map if nothing is changed, otherwise both maps and their difference.
function mapsOf(before, now, d, { room, gamma, look }) {
  const same = now === before;
  const cell = cellOf(same ? [now.m] : [before.m, now.m, d], room, 40);
  const sides = same ? [[before, 'before', 'Original', 0]]
    : [[before, 'before', 'Original', 0], [now, 'now', 'Changed', 1]];
  const maps = sides.map(([one, name, title, side]) => {
    const drawing = heatmap(one.m, { room, gamma, cell, sums: false,
      tell: (row, col) => point(placed(d.rowPairs, side, row), placed(d.colPairs, side, col)),
      choose: look && ((row, col) => look(one, row, col)) });
    return { name, title, drawing, mark: (row, col) => drawing.mark(
      row === null ? null : d.rowPairs[row]?.[side] ?? null,
      col === null ? null : d.colPairs[col]?.[side] ?? null) };
  });
  if (same) return maps;
  const drawing = heatmap(d, { room, gamma, cell, paint: diverging, sums: false, dotted: false });
  maps.push({ name: 'difference', title: 'Difference: red more, blue less', drawing,
    mark: (row, col) => drawing.mark(row, col) });
  return maps;
}

// The steps of the clicked row: all pieces of a word, or one piece.
function stepsOf(m, row) {
  const first = m.rowOf.indexOf(row);
  return { first, end: m.rowOf.lastIndexOf(row) + 1 };
}

// invitation(): what the user can do, above the maps. note(): background, below them.
function invitation(kind) {
  return el('p', { class: 'note' }, 'Click a word to mask it, double-click to edit it, click a '
    + 'head to mute it', kind === 'cross' ? ', click a cell of the map to make its step attend '
    + 'there' : '', '. The changed translation appears below.');
}

function note() {
  return el('p', { class: 'note' }, 'A forced step attends there in the chosen layer and head, or '
    + 'in all; the pieces before it are kept. Means omit muted heads. Keys: e edits the word '
    + 'in focus, f makes the chosen step (← →) attend to it. A recurrent encoder still reads a '
    + 'masked word; only attention ignores it.');
}

// A cell of the difference as "before 0.602, now 0.000, difference −0.602".
function readBoth(before, now, d) {
  const weight = (m, side, row, col) => {
    const [i, j] = [d.rowPairs[row][side], d.colPairs[col][side]];
    return i === null || j === null ? '–' : m.at(i, j).toFixed(3);
  };
  return (row, col) => `: before ${weight(before.m, 0, row, col)}, `
    + `now ${weight(now.m, 1, row, col)}, difference ${d.at(row, col).toFixed(3)}`;
}

export const view = {
  id: 'whatif',
  title: 'What if?',
  asks: true,  // needs the server: it translates the changed sentence
  changes: true,  // this view shows changes
  steps: true,  // ← → choose a step
  saves: ['svg', 'png', 'embed', 'csv'],  // of the difference of two sentences
  tools: ['kind', 'layer', 'head', 'unit', 'gamma'],
  draw(stage, { sentence, m, state, model, again }) {
    const box = el('div', { class: 'what-if', 'data-state': 'waiting' });
    const forces = state.kind === 'cross';
    const before = { sentence, m };
    const look = (one, row, col) => {
      const at = one.sentence.source.word_of[one.m.colOf.indexOf(col)];
      force(state, one.sentence, { ...stepsOf(one.m, row), at, layer: state.layer,
        head: state.head });
    };
    const drawn = { point: () => {} };
    const show = (now) => {
      const d = difference(m, now.m);
      const wordPairs = difference(matrix(sentence, { ...state, kind: 'cross', unit: 'words' }),
        matrix(now.sentence, fitted(now.sentence, { ...state, kind: 'cross', unit: 'words' })));
      const same = now === before;
      const maps = mapsOf(before, now, d, { room: stage.clientWidth - 70,
        gamma: state.gamma, look: forces && look });
      const words = sourceWords(now.sentence, state, (step, at) => force(state, now.sentence,
        { first: step, end: step + 1, at, layer: state.layer, head: state.head }));
      words.point = (at) => point(null, at === null || state.unit !== 'words' ? null
        : placed(d.colPairs, 1, at));
      const silences = layers(sentence, state.kind).length * heads(sentence, state.kind).length > 1;
      box.replaceChildren(
        invitation(state.kind),
        el('div', { class: 'controls' }, el('div', {}, el('h2', {}, 'The model reads'), words),
          silences ? el('div', {}, el('h2', {}, 'Heads'), headButtons(now.sentence, state)) : ''),
        changeList(state, now.sentence),
        same ? '' : translation('before', sentence, wordPairs.rowPairs, 0, now.sentence),
        translation('now', now.sentence, wordPairs.rowPairs, 1, sentence),
        el('div', { class: 'pair' }, maps.map((one) => panel(one.name, one.title, one.drawing))),
        note());
      Object.assign(drawn, { m: same ? m : d, drawing: maps.at(-1).drawing,
        value: same ? undefined : readBoth(before, now, d),
        point: ({ row, col }) => maps.forEach((one) => one.mark(row, col)),
        step: (at) => point(placed(d.rowPairs, 1, now.m.rowOf[at] ?? null), null) });
      if (focused) box.querySelector(focused)?.focus();
      focused = '';
      again();
      box.dataset.state = 'done';
    };
    stage.append(box);
    if (!isChanged(state)) {
      show(before);
      return drawn;
    }
    changed(sentence, model, changes(state)).then((found) => show({ sentence: found,
      m: matrix(found, fitted(found, state)) })).catch((error) => {
      box.replaceChildren(changeList(state, sentence),
        el('p', { class: 'note', role: 'alert' }, error.message));
      box.dataset.state = 'failed';
    });
    return drawn;
  },
};
