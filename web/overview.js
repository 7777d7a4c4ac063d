// A drawing that is larger than its window, with a small picture of the whole for navigation.

import { blues } from './colours.js';
import { el, pixels } from './dom.js';

const MOST = 150;  // pixels of the small picture

function small(m, gamma) {
  const canvas = pixels(m.weights, { ...m, colour: (w) => blues(w, gamma) }, { class: 'picture' });
  const scale = MOST / Math.max(m.cols, m.rows);
  canvas.style.width = `${Math.round(m.cols * scale)}px`;
  canvas.style.height = `${Math.round(m.rows * scale)}px`;
  return canvas;
}

// The drawing in a scrolling window, with the small picture next to it.
export function windowed(drawing, m, { gamma, height }) {
  const frame = el('div', { class: 'frame' }, drawing);
  frame.style.maxHeight = `${height}px`;
  const here = el('div', { class: 'here' });
  const overview = el('div', { class: 'overview', role: 'img', 'aria-label': 'Overview' },
    small(m, gamma), here);
  const part = (name, share) => { here.style[name] = `${Math.min(100, 100 * share)}%`; };
  const follow = () => {
    part('left', frame.scrollLeft / frame.scrollWidth);
    part('top', frame.scrollTop / frame.scrollHeight);
    part('width', frame.clientWidth / frame.scrollWidth);
    part('height', frame.clientHeight / frame.scrollHeight);
    drawing.follow?.(frame.scrollLeft, frame.scrollTop);
  };
  const go = (event) => {
    if (event.buttons === 0 && event.type !== 'click') return;
    const box = overview.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width;
    const y = (event.clientY - box.top) / box.height;
    frame.scrollTo(x * frame.scrollWidth - frame.clientWidth / 2,
      y * frame.scrollHeight - frame.clientHeight / 2);
  };
  frame.addEventListener('scroll', follow);
  overview.addEventListener('mousemove', go);
  overview.addEventListener('click', go);
  const all = el('div', { class: 'windowed' }, frame, overview);
  all.settle = follow;  // call it once the element is on the page
  return all;
}
