// The embedding map: words with similar embeddings are near each other.

import { el, svg, widthOf, word } from './dom.js';
import { HEADS } from './colours.js';
import { neighbours } from './service.js';
import { say } from './number_bars.js';
import { set } from './state.js';
import { shown } from './attention.js';

const MOST_ROOM = { width: 860, height: 540 };
const EDGE = 46;
const CENTRE = 'bold 14px system-ui, sans-serif';
const MOST = 40;  // the most words in one request to the service

export function sides(state) {
  return el('span', { class: 'switch', role: 'group', 'aria-label': 'Side' },
    ['source', 'target'].map((side) => el('button', {
      type: 'button', 'data-side': side, 'aria-pressed': String(state.side === side),
      onclick: () => set({ side, word: '' }),
    }, side)));
}

// The size of the map on this screen.
function sizeOf(room) {
  const width = Math.max(300, Math.min(MOST_ROOM.width, room));
  return { width, height: Math.min(MOST_ROOM.height, Math.round(width * 1.15)) };
}

function places(map, size) {
  const range = (name) => {
    const all = map.map((one) => one[name]);
    return [Math.min(...all), Math.max(...all)];
  };
  const [left, right] = range('x');
  const [low, high] = range('y');
  const scale = Math.min((size.width - 2 * EDGE) / (right - left || 1),
    (size.height - 2 * EDGE) / (high - low || 1));
  return map.map((one) => ({ ...one,
    px: size.width / 2 + (one.x - (left + right) / 2) * scale,
    py: size.height / 2 - (one.y - (low + high) / 2) * scale }));
}

const apart = (a, b) => a.x + a.w < b.x || b.x + b.w < a.x || a.y + a.h < b.y || b.y + b.h < a.y;

// Places each name to the right or left of its point, or above or below it. A name without free
// space is omitted; pointing at the point reads it out.
function label(points, size) {
  const taken = points.map(({ px, py }) => ({ x: px - 4, y: py - 4, w: 8, h: 8 }));
  const first = [...points].sort((a, b) => b.centre - a.centre);
  for (const one of first) {
    const w = widthOf(shown(one.word), one.centre ? CENTRE : undefined) + 2;
    const at = [[8, -7], [-8 - w, -7], [-w / 2, -22], [-w / 2, 8], [8, -20], [8, 6], [-8 - w, -20],
      [-8 - w, 6]].map(([dx, dy]) => ({ x: one.px + dx, y: one.py + dy, w, h: 14 }));
    const free = at.find((box) => box.x > 0 && box.x + w < size.width
      && taken.every((other) => apart(box, other)));
    if (free) taken.push(free);
    one.box = free ?? null;
  }
}

function point(one, cosines) {
  const colour = HEADS[one.group % HEADS.length];
  const cosine = cosines.get(one.word);
  const about = cosine ? ` (cosine with ${shown(cosine.of)} ${cosine.value.toFixed(3)})` : '';
  const text = one.box ? svg('text', { x: one.box.x, y: one.box.y + 11,
    class: one.centre ? 'centre' : null }, shown(one.word)) : null;
  return svg('g', {
    class: 'map-word', 'data-word': one.word, 'data-x': one.x, 'data-y': one.y, tabindex: 0,
    role: 'button', 'aria-label': shown(one.word) + about, 'data-cosine': cosine?.value,
    onmouseenter: () => say(shown(one.word) + about), onmouseleave: () => say(''),
    onclick: () => set({ word: one.word }),
    onkeydown: (event) => { if (event.key === 'Enter') set({ word: one.word }); },
  }, svg('title', {}, shown(one.word) + about),
  svg('circle', { cx: one.px, cy: one.py, r: one.centre ? 6 : 3.5, fill: colour }), text);
}

function draw(reply, room) {
  const { width, height } = sizeOf(room);
  const points = places(reply.map, { width, height });
  label(points, { width, height });
  const cosines = new Map();
  for (const { word: of, neighbours: near } of reply.words)
    for (const one of near)
      if (!cosines.has(one.word)) cosines.set(one.word, { of, value: one.cosine });
  const centres = new Map(points.filter((one) => one.centre).map((one) => [one.group, one]));
  const lines = points.filter((one) => !one.centre).map((one) => svg('line', {
    x1: one.px, y1: one.py, x2: centres.get(one.group).px, y2: centres.get(one.group).py,
    stroke: HEADS[one.group % HEADS.length] }));
  return svg('svg', { width, height, viewBox: `0 0 ${width} ${height}`, class: 'word-map',
    role: 'figure', 'aria-label': 'Map of words' }, lines, points.map((one) =>
    point(one, cosines)));
}

function lists(reply) {
  const { word: of, neighbours: near } = reply.words[0];
  return el('div', { class: 'near' }, el('h2', {}, 'Most like ', word(shown(of))),
    el('ol', {}, near.map((one) => el('li', {}, word(shown(one.word)),
      ` ${one.cosine.toFixed(3)}`))));
}

function asked(sentence, state) {
  if (state.word) return { words: [state.word], count: 24 };
  const side = state.side === 'target' ? sentence.target : sentence.source;
  const words = [...new Set(side.tokens.filter((piece) => piece !== '</s>'))].slice(0, MOST);
  return { words, count: words.length > 12 ? 2 : 4 };
}

export const view = {
  id: 'words',
  bare: true,
  title: 'Words',
  hint: 'Point at a word to read its cosine with the nearest chosen word. Click to choose it.',
  tools: [],
  asks: true,
  saves: ['svg', 'png', 'embed'],
  draw(stage, { sentence, state, model }) {
    const all = state.word ? el('button', { type: 'button', class: 'all-words',
      onclick: () => set({ word: '' }) }, 'all words of the sentence') : null;
    const body = el('div', { class: 'word-view' }, el('p', {}, sides(state), ' ', all ?? ''));
    stage.append(body);
    const drawn = {};
    neighbours(model, state.side, asked(sentence, state)).then((reply) => {
      if (reply.map.length > 0) {
        drawn.drawing = draw(reply, stage.clientWidth - 30);
        body.append(el('div', { class: 'pair' }, drawn.drawing, state.word ? lists(reply) : ''));
      } else {
        body.append(el('p', { class: 'note' }, 'The model knows none of these words.'));
      }
      body.append(el('p', { class: 'note' }, 'Words, and those nearest to each by the cosine of '
        + 'their embeddings, in the plane in which they differ most. Click a word to see its '
        + 'neighbours.'));
      body.dataset.shown = state.word || 'sentence';
    }, (error) => body.append(el('p', { class: 'note' }, error.message)));
    return drawn;
  },
};
