// Pictures and tables to keep.

import { csv, pharaoh } from './attention.js';
import { json, tikz } from './tables.js';
import { el } from './dom.js';

const KEPT = ['fill', 'stroke', 'stroke-width', 'stroke-opacity', 'fill-opacity', 'opacity',
  'font-family', 'font-size', 'font-weight', 'font-style', 'stroke-dasharray', 'color'];

// A drawing that needs no style sheet, as text. Text stays text.
function standalone(drawing) {
  const copy = drawing.cloneNode(true);
  const from = [drawing, ...drawing.querySelectorAll('*')];
  const to = [copy, ...copy.querySelectorAll('*')];
  from.forEach((node, i) => {
    const style = getComputedStyle(node);
    for (const name of KEPT) to[i].setAttribute(name, style.getPropertyValue(name));
    to[i].removeAttribute('style');
    to[i].removeAttribute('class');
  });
  const { width, height } = drawing.viewBox.baseVal;
  const paper = document.createElementNS(drawing.namespaceURI, 'rect');
  paper.setAttribute('width', width);
  paper.setAttribute('height', height);
  paper.setAttribute('fill', getComputedStyle(document.body).getPropertyValue('--card').trim());
  copy.prepend(paper);
  return new XMLSerializer().serializeToString(copy);
}

function keep(name, blob) {
  const href = URL.createObjectURL(blob);
  const link = el('a', { href, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(href), 10000);
}

// Twice as many points as on the screen, for print.
async function png(drawing) {
  const href = URL.createObjectURL(new Blob([standalone(drawing)], { type: 'image/svg+xml' }));
  const image = new Image();
  image.src = href;
  await image.decode();
  const { width, height } = drawing.viewBox.baseVal;
  const canvas = el('canvas', { width: Math.ceil(width * 2), height: Math.ceil(height * 2) });
  canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(href);
  return new Promise((done) => { canvas.toBlob(done, 'image/png'); });
}

// A piece of HTML to paste into a page of one's own; it needs nothing else.
function snippet(drawing, sentence) {
  const caption = el('figcaption', { dir: 'auto' },
    `${sentence.source.text} → ${sentence.target.text}`);
  return `<figure>\n${standalone(drawing)}\n${caption.outerHTML}\n</figure>\n`;
}

// What `form` asks for as a Blob, or null where the view has no drawing.
export async function content(form, { drawing, m, sentence, choice }) {
  if (form === 'csv') return new Blob([csv(m)], { type: 'text/csv' });
  if (form === 'pharaoh')
    return new Blob([`${pharaoh(sentence, choice)}\n`], { type: 'text/plain' });
  if (form === 'json')
    return new Blob([json(m, sentence, choice)], { type: 'application/json' });
  if (form === 'latex') return new Blob([tikz(m)], { type: 'text/plain' });
  if (!drawing) return null;
  if (form === 'png') return png(drawing);
  if (form === 'embed') return new Blob([snippet(drawing, sentence)], { type: 'text/html' });
  return new Blob([standalone(drawing)], { type: 'image/svg+xml' });
}

const ENDINGS = { pharaoh: 'align.txt', latex: 'tex', embed: 'html' };

export async function save(form, shown) {
  const blob = await content(form, shown);
  if (blob) keep(`attention.${ENDINGS[form] ?? form}`, blob);
  return blob !== null;
}
