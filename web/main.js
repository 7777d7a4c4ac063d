// The page: sends requests to the service, keeps the tools consistent with the state, and draws
// the chosen view.

import { clear, el, options } from './dom.js';
import { usePalette } from './colours.js';
import {
  KIND_NAMES, MAXIMUM, MEAN, fitted, heads, kinds, layers, matrix, read,
} from './attention.js';
import { onChange, onPoint, point, set, settle, spot, start, state } from './state.js';
import { models, languages, needsKey, recorded, translate, useKey } from './service.js';
import { save } from './save.js';
import { mark, reading, say } from './readout.js';
import { warningLines } from './warnings.js';
import { view as map } from './map.js';
import { view as player } from './step_player.js';
import { view as lines } from './lines.js';
import { view as headGrid } from './heads.js';
import { view as beam } from './beam.js';
import { view as compare } from './compare.js';
import { view as whatIf } from './whatif.js';
import { UNCHANGED, changeList, isChanged } from './change.js';
import { view as inside } from './explain.js';
import { view as positions } from './positions.js';
import { view as words } from './words.js';
import { view as training } from './training.js';

const VIEWS = [map, player, lines, headGrid, beam, whatIf, compare, inside,
  positions, words, training].filter((v) => !recorded || !v.asks);
const EXAMPLES = {
  en: 'A small dog runs through the snow.',
  de: 'Ein kleiner Hund läuft durch den Schnee.',
  fr: 'Un petit chien court dans la neige.',
};

const by = (id) => document.getElementById(id);
const page = { models: [], sentences: [], drawn: {}, m: null, asked: 0, calling: null,
  failed: false };

const view = () => VIEWS.find((v) => v.id === state.view) ?? map;
const chosen = () => Math.min(state.sentence, page.sentences.length - 1);
const sentence = () => page.sentences[chosen()];
const model = () => page.models.find((m) => m.id === state.model) ?? page.models[0];
// The models that can read the same sentence. By default, Compare uses one model for two sentences,
// and for one sentence this model and the first other model.
const readers = () => page.models.filter((m) => m.source === model().source);
const other = () => readers().find((m) => m.id === state.other)
  ?? readers().find((m) => m !== model() && !state.second) ?? model();

// " (global, dot)" after the name of a model, without the parts that equal the name.
function mechanism(m) {
  const more = [m.attention, m.score].filter((part) => part && part !== m.name);
  return more.length > 0 ? ` (${more.join(', ')})` : '';
}

function message(text, ...more) {
  clear(by('message')).append(text, ...more);
  by('message').hidden = !text;
}

function warn(warnings) {
  const lines = warningLines(warnings, page.models, model(), (m) => set(
    { model: m.id, sentence: 0, step: 0, ...UNCHANGED }));
  clear(by('warnings')).append(...lines);
  by('warnings').hidden = lines.length === 0;
}

function theme() {
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  document.documentElement.dataset.theme = state.theme || (dark ? 'dark' : 'light');
  usePalette(state.palette);
}

function waiting(on) {
  by('translation').classList.toggle('waiting', on);
  by('translation').setAttribute('aria-busy', on);  // screen readers read it when it is complete
}

async function ask() {
  const turn = ++page.asked;
  const text = state.text.trim();
  page.calling?.abort();
  page.calling = new AbortController();
  waiting(true);
  message('');
  warn([]);
  const grown = (begun) => { if (turn === page.asked) by('translation').textContent = begun; };
  try {
    const reply = text || recorded
      ? await translate(text, model(), {}, { grown, signal: page.calling.signal })
      : { translatedText: '', attention: [] };
    if (turn !== page.asked) return;  // a newer request has begun
    page.sentences = reply.attention.map((s, number) => read({ ...s, number }));
    page.failed = false;
    page.tooLarge = reply.tooLarge;
    warn(reply.warnings ?? []);
    say(by('translation'), reply.translatedText, page.sentences, { tell: pointAt, choose: goTo });
  } catch (error) {
    if (turn !== page.asked) return;
    page.failed = true;
    message(error.message, ' ', el('button', { type: 'button', onclick: ask }, 'Try again'));
    clear(by('translation'));
  }
  by('key-line').hidden = !needsKey();
  waiting(false);
  outdated();
  draw();
  document.body.dataset.ready = turn;
}

// Marks the shown translation as outdated while the user types another sentence, or after a
// failure.
function outdated() {
  const typed = !recorded && by('text').value.trim() !== state.text.trim();
  by('stage').classList.toggle('stale', typed || page.failed);
  by('translation').classList.toggle('stale', typed);
  by('outdated').hidden = !typed;
}

// The matrix whose weights the line above the view reads out: that of the chosen sentence, or one
// that the view itself provides (for example a difference).
const shownMatrix = () => page.drawn.read ?? page.drawn.m ?? page.m;
const ofTarget = (m) => m?.rowOf && m.kind !== 'encoder';

// Marks the word of the translation under the mouse; a row of null clears the mark.
function pointAt(number, row) {
  const m = shownMatrix();
  if (row === null) return point(null, null);
  if (number !== chosen() || !ofTarget(m) || !page.drawn.point) return;
  point(m.rowOf[sentence().target.word_of.indexOf(row) + m.ahead], null);
}

function goTo(number, row) {
  const step = page.sentences[number].target.word_of.indexOf(row);
  set(number === chosen() ? { step } : { sentence: number, step, ...UNCHANGED });
}

// A view of single numbers has no means. It shows the first layer or head by default.
function number(select, list, chosen, means) {
  const offered = [...(view().single ? [] : means), ...list.map((i) => [i, String(i + 1)])];
  options(select, offered, view().single ? Math.max(0, chosen) : chosen);
  select.disabled = list.length < 2;
}

function tools() {
  const now = view();
  const s = sentence();
  for (const button of by('views').children)
    button.setAttribute('aria-selected', button.dataset.view === now.id);
  by('tools').hidden = !s;
  const offers = (name) => s && now.tools.includes(name) && (s.maps.length > 0 || name === 'other');
  for (const name of ['kind', 'layer', 'head'])
    by(name).parentElement.hidden = !offers(name);
  document.querySelector('.switch').hidden = !offers('unit');
  for (const name of ['gamma', 'hide', 'other', 'gold'])
    by(`${name}-line`).hidden = !offers(name);
  for (const button of document.querySelectorAll('[data-save]')) {
    const form = button.dataset.save;
    const drawn = /^(svg|png|embed)$/.test(form) && now.bare;  // all other formats contain weights
    button.hidden = !s || !(drawn || s.maps.length > 0) || !(now.saves ?? [form]).includes(form);
  }
  by('sentence-line').hidden = page.sentences.length < 2;
  by('gamma').value = state.gamma;
  by('hide').value = state.hide;
  by('palette').value = state.palette;
  if (document.activeElement !== by('gold')) by('gold').value = state.gold;
  const unit = s && fitted(s, state).unit;
  for (const button of document.querySelectorAll('[data-unit]'))
    button.setAttribute('aria-pressed', button.dataset.unit === unit);
  if (!s) return;
  options(by('other'), readers().map((m) => [m.id, m.id + mechanism(m)]), other().id);
  const title = (x, i) => [i, `${i + 1}: ${x.source.text.slice(0, 30)}`];
  options(by('sentence'), page.sentences.map(title), state.sentence);
  options(by('kind'), kinds(s).map((k) => [k, KIND_NAMES[k]]), state.kind);
  const kind = now.tools.includes('kind') ? state.kind : 'cross';
  number(by('layer'), layers(s, kind), state.layer, [[MEAN, 'mean']]);
  number(by('head'), heads(s, kind), state.head, [[MEAN, 'mean'], [MAXIMUM, 'maximum']]);
}

function draw() {
  tools();
  const stage = clear(by('stage'));
  page.drawn = {};
  page.m = null;
  clear(by('read-out')).dataset.hint = '';
  const s = sentence();
  if (recorded && s) {
    by('text').value = s.source.text;
    const others = page.sentences.slice(0, chosen()).map(() => ({ target: { words: [] } }));
    say(by('translation'), s.target.text, [...others, s], { tell: pointAt, choose: goTo });
  }
  if (!s || (s.maps.length === 0 && !view().bare)) {
    stage.append(el('p', { class: 'note' }, why(s)));
    return;
  }
  const now = fitted(s, state);
  page.m = matrix(s, now);
  if (isChanged(state) && !view().changes)
    stage.append(el('div', { class: 'unchanged' }, changeList(state, s), el('p', { class: 'note' },
      'This view shows the original sentence. What if? and Search show it with these changes.')));
  page.drawn = view().draw(stage, { sentence: s, m: page.m, state: now, model: model(),
    other: other(), again: () => readOut(spot) }) ?? {};
  by('read-out').dataset.hint = page.drawn.hint ?? view().hint ?? '';
  readOut(spot);
}

// The reason why there is nothing to draw.
function why(s) {
  if (recorded) return 'This model has no attention to show.';
  if (by('translation').getAttribute('aria-busy') === 'true') return 'Translating …';
  if (page.failed) return 'There is nothing to show: the sentence was not translated.';
  if (!state.text.trim()) return 'Type a sentence.';
  if (page.tooLarge) return 'The attention of this text is too large to show; shorten the text.';
  if (!s) return 'There are no words to translate in this text. The page shows it unchanged.';
  return 'This model has no attention to show: its decoder starts from the last state of the '
    + 'encoder and sees nothing else of the source. Search and Words work with it. Compare shows '
    + 'it next to another model.';
}

function readOut({ row, col, pinned }) {
  const line = clear(by('read-out'));
  const m = shownMatrix();
  page.drawn.point?.({ row, col });
  const marks = ofTarget(m) && page.drawn.point && row !== null && row < m.rows;
  mark(by('translation'), chosen(),
    marks ? sentence().target.word_of[m.rowOf.indexOf(row) - m.ahead] ?? null : null);
  if (!m || !page.drawn.point) return;
  line.append(...reading(m, { row, col }, page.drawn.value));
  if (pinned && m.rowOf && !recorded) line.append(' ', el('button', { type: 'button', class: 'how',
    onclick: () => set({ view: 'inside', step: m.rowOf.indexOf(row), col: m.colOf.indexOf(col) }),
  }, 'Explain this weight'));
}

function shift(name, list, by_) {
  const all = name === 'head' ? [MAXIMUM, MEAN, ...list] : [MEAN, ...list];
  const at = all.indexOf(state[name]) + by_;
  if (at >= 0 && at < all.length) set({ [name]: all[at] });
}

function keys(event) {
  const s = sentence();
  if (!s || event.ctrlKey || event.metaKey || event.altKey) return;
  const { tagName } = event.target;
  if (/^(TEXTAREA|SELECT|INPUT)$/.test(tagName) && !event.target.matches('.step')) return;
  const kind = view().tools.includes('kind') ? state.kind : 'cross';
  const last = s.steps.length - 1;
  const offers = (name, act) => (view().tools.includes(name) ? act : null);
  const steps = (act) => (view().steps ? act : null);  // otherwise the arrow keys scroll
  const actions = {
    ArrowRight: steps(() => set({ step: Math.min(last, state.step + 1) })),
    ArrowLeft: steps(() => set({ step: Math.max(0, state.step - 1) })),
    ArrowDown: offers('layer', () => shift('layer', layers(s, kind), 1)),
    ArrowUp: offers('layer', () => shift('layer', layers(s, kind), -1)),
    ']': offers('head', () => shift('head', heads(s, kind), 1)),
    '[': offers('head', () => shift('head', heads(s, kind), -1)),
    s: () => keep('svg'),
  };
  const number = Number(event.key) - 1;
  const act = VIEWS[number] ? () => set({ view: VIEWS[number].id }) : actions[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

function listen() {
  by('ask').addEventListener('submit', (event) => {
    event.preventDefault();
    set({ text: by('text').value, model: by('model').value, sentence: 0, step: 0, ...UNCHANGED });
    ask();
  });
  by('text').addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    by('ask').requestSubmit();
  });
  by('model').addEventListener('change', choose);
  by('key').addEventListener('change', () => { useKey(by('key').value); ask(); });
  for (const name of ['kind', 'other', 'palette'])
    by(name).addEventListener('change', () => set({ [name]: by(name).value }));
  for (const name of ['layer', 'head'])
    by(name).addEventListener('change', () => set({ [name]: Number(by(name).value) }));
  by('sentence').addEventListener('change', () => set({ sentence: Number(by('sentence').value),
    step: 0, ...UNCHANGED }));
  const most = by('text').maxLength;
  by('text').addEventListener('input', () => {
    outdated();
    message(by('text').value.length < most ? ''
      : `Limit: ${most} characters. For longer texts use fovea translate.`);
  });
  for (const name of ['gamma', 'hide'])
    by(name).addEventListener('input', () => set({ [name]: Number(by(name).value) }));
  by('gold').addEventListener('input', () => set({ gold: by('gold').value }));
  for (const button of document.querySelectorAll('[data-unit]'))
    button.addEventListener('click', () => set({ unit: button.dataset.unit }));
  for (const button of document.querySelectorAll('[data-save]'))
    button.addEventListener('click', () => keep(button.dataset.save));
  by('theme').addEventListener('click', () => set({
    theme: document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark' }));
  addEventListener('keydown', keys);
  addEventListener('resize', () => draw());
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { theme(); draw(); });
}

async function keep(form) {
  const s = sentence();
  if (!s) return;
  const drawing = page.drawn.drawing ?? by('stage').querySelector('svg');
  const shown = { m: page.m, sentence: s, choice: fitted(s, state), ...page.drawn };
  const kept = await save(form, { ...shown, drawing, view: view().id });
  if (!kept) message('This view has no drawing to save.');
}

// Another model may read another language. If the text is an example sentence of the old language,
// the page replaces it by the example of the new language.
function choose() {
  const next = page.models.find((m) => m.id === by('model').value);
  const example = Object.values(EXAMPLES).includes(by('text').value.trim());
  if (example && EXAMPLES[next.source]) by('text').value = EXAMPLES[next.source];
  by('ask').requestSubmit();
}

function changed(names) {
  if (names.has('theme') || names.has('palette')) theme();
  if (names.has('view') && !page.failed) message('');
  const asks = (names.has('text') && by('text').value !== state.text)
    || (names.has('model') && by('model').value !== state.model);
  if (!asks && names.size === 1 && names.has('step') && page.drawn.step)
    return page.drawn.step(state.step);
  if (!asks) return draw();
  by('text').value = state.text;
  by('model').value = model().id;
  return ask();
}

async function begin() {
  start();
  theme();
  for (const v of VIEWS)
    by('views').append(el('button', { type: 'button', role: 'tab', 'data-view': v.id,
      'data-title': v.title, onclick: () => set({ view: v.id }) }, v.title));
  listen();
  onPoint(readOut);
  try {
    const [all, known] = await Promise.all([models(), languages()]);
    const same = (m) => all.filter((x) => x.name === m.name).length > 1;
    page.models = all.map((m) => ({ ...m,
      id: same(m) ? `${m.source}-${m.target}: ${m.name}` : m.name }));
    const name = (code) => known.find((l) => l.code === code)?.name ?? code;
    options(by('model'), page.models.map((m) => [m.id,
      `${name(m.source)} to ${name(m.target)}: ${m.name}${mechanism(m)}`,
      m.gallery ? 'Gallery: one tiny model for each mechanism' : '']), model().id);
  } catch (error) {
    return message(error.message);
  }
  if (recorded) {
    by('text').readOnly = true;
    document.querySelector('header p').textContent =
      'A sentence, its translation, and where each word came from.';
    by('ask').querySelector('button').hidden = true;
  } else if (!state.text) settle({ text: EXAMPLES[model().source] ?? EXAMPLES.en });
  by('text').value = state.text;
  onChange(changed);
  return ask();
}

begin();
