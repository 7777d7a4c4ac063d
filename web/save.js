// Saves pictures and tables as files.

import { csv, pharaoh } from './attention.js';
import { json, tikz } from './tables.js';
import { el } from './dom.js';

const KEPT = ['fill', 'stroke', 'stroke-width', 'stroke-opacity', 'fill-opacity', 'opacity',
  'font-family', 'font-size', 'font-weight', 'font-style', 'stroke-dasharray', 'color'];

// A drawing as SVG text that needs no style sheet. Its text stays text.
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

// One drawing, or several side by side.
function sheet(drawings) {
  const gap = 24;
  let right = -gap;
  let height = 0;
  const parts = drawings.map((drawing) => {
    const size = drawing.viewBox.baseVal;
    const left = right + gap;
    right = left + size.width;
    height = Math.max(height, size.height);
    return standalone(drawing).replace('<svg', `<svg x="${left}"`);
  });
  if (drawings.length === 1) return { text: standalone(drawings[0]), width: right, height };
  return { text: `<svg xmlns="http://www.w3.org/2000/svg" width="${right}" height="${height}" `
    + `viewBox="0 0 ${right} ${height}">${parts.join('')}</svg>`, width: right, height };
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
async function png({ text, width, height }) {
  const href = URL.createObjectURL(new Blob([text], { type: 'image/svg+xml' }));
  const image = new Image();
  image.src = href;
  await image.decode();
  const canvas = el('canvas', { width: Math.ceil(width * 2), height: Math.ceil(height * 2) });
  canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(href);
  return new Promise((done) => { canvas.toBlob(done, 'image/png'); });
}

// A piece of HTML that users can paste into their own page. It needs no other file.
function snippet({ text }, sentence) {
  const caption = el('figcaption', { dir: 'auto' },
    `${sentence.source.text} → ${sentence.target.text}`);
  return `<figure>\n${text}\n${caption.outerHTML}\n</figure>\n`;
}

// The file in the format `form` as a Blob, or null if the view has no drawing.
export async function content(form, { drawing, m, sentence, choice }) {
  if (form === 'csv') return new Blob([csv(m)], { type: 'text/csv' });
  if (form === 'pharaoh')
    return new Blob([`${pharaoh(sentence, choice)}\n`], { type: 'text/plain' });
  if (form === 'json')
    return new Blob([json(m, sentence, choice)], { type: 'application/json' });
  if (form === 'latex') return new Blob([tikz(m)], { type: 'text/plain' });
  if (!drawing) return null;
  const drawn = sheet([drawing].flat());
  if (form === 'png') return png(drawn);
  if (form === 'embed') return new Blob([snippet(drawn, sentence)], { type: 'text/html' });
  return new Blob([drawn.text], { type: 'image/svg+xml' });
}

const ENDINGS = { pharaoh: 'align.txt', latex: 'tex', embed: 'html' };

// "a-small-dog-runs-map.svg"
function nameOf({ sentence, view }) {
  const words = sentence.source.text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? ['attention'];
  return `${words.slice(0, 6).join('-').slice(0, 50)}-${view}`;
}

export async function save(form, shown) {
  const blob = await content(form, shown);
  if (blob) keep(`${nameOf(shown)}.${ENDINGS[form] ?? form}`, blob);
  return blob !== null;
}
