// The state of the page. The address contains it, so that users can share it: #view=lines&layer=1&…

const DEFAULTS = {
  text: '', model: '', other: '', view: 'map', sentence: 0, kind: 'cross', layer: -1, head: -1,
  unit: '', gamma: 1, hide: 0.05, step: 0, theme: '',
  col: -1, side: 'source', word: '', update: -1, gold: '',
  palette: '', off: '', sort: '',
  edit: '', mask: '', mute: '', force: '', prefix: '', second: '',
};

export const state = { ...DEFAULTS };
const listeners = [];

function read() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const [name, value] of Object.entries(DEFAULTS)) {
    const text = given.get(name);
    if (typeof value === 'number') {
      const number = Number(text);
      state[name] = text !== null && Number.isFinite(number) ? number : value;
    } else {
      state[name] = text ?? value;
    }
  }
}

// A change of one of these adds an entry to the browser's history.
const GOES_BACK = /^(text|model|other|second|view|sentence|edit|mask|mute|force|prefix)$/;

function write(how) {
  const kept = new URLSearchParams();
  for (const [name, value] of Object.entries(DEFAULTS))
    if (state[name] !== value) kept.set(name, state[name]);
  history[how](null, '', `#${kept}`);
}

function tell(changed) {
  for (const listener of listeners) listener(changed);
}

export function set(changes) {
  const changed = Object.keys(changes).filter((name) => state[name] !== changes[name]);
  if (changed.length === 0) return;
  pinned = pinned && changed.every((name) => /^(gamma|gold|palette|theme)$/.test(name));
  Object.assign(state, changes);
  write(changed.some((name) => GOES_BACK.test(name)) ? 'pushState' : 'replaceState');
  tell(new Set(changed));
}

// Sets choices of the page itself, without a call of the listeners and without a history entry.
export function settle(changes) {
  Object.assign(state, changes);
  write('replaceState');
}

export function onChange(listener) {
  listeners.push(listener);
}

export function start() {
  read();
  addEventListener('hashchange', () => {
    const before = { ...state };
    read();
    const changed = Object.keys(state).filter((name) => state[name] !== before[name]);
    if (changed.length > 0) tell(new Set(changed));
  });
}

// The cell under the mouse, shared by all views: row and column of the chosen matrix, or null.
const watchers = [];
export let spot = { row: null, col: null };
let pinned = false;

function show(row, col) {
  spot = { row, col, pinned };
  for (const watcher of watchers) watcher(spot);
}

export function point(row, col) {
  if (pinned || (spot.row === row && spot.col === col)) return;
  show(row, col);
}

// Keeps a cell selected until the user pins another cell, or the same cell again.
export function pin(row, col) {
  pinned = row !== null && col !== null
    && !(pinned && spot.row === row && spot.col === col);
  show(row, col);
}

export function onPoint(watcher) {
  watchers.push(watcher);
}
