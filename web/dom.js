// Elements. The text of a sentence becomes text nodes only, never markup.

const SVG = 'http://www.w3.org/2000/svg';

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') node.addEventListener(name.replace(/^on/, ''), value);
    else node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

export function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

// A word of a sentence: right-to-left if its letters are.
export function word(text, attributes = {}) {
  return el('bdi', { dir: 'auto', ...attributes }, text);
}

export function clear(node) {
  node.replaceChildren();
  return node;
}

// Fills a <select>. Each item of the list is [value, text] or [value, text, name of its group].
export function options(select, list, chosen) {
  const groups = new Map();
  for (const [value, text, group] of list) {
    if (!groups.has(group ?? '')) groups.set(group ?? '', []);
    groups.get(group ?? '').push(
      el('option', { value, selected: String(value) === String(chosen) }, text));
  }
  select.replaceChildren(...[...groups].flatMap(([label, all]) =>
    (label ? el('optgroup', { label }, all) : all)));
}

// A canvas of rows × cols numbers, one pixel each.
export function pixels(values, { rows, cols, colour }, attributes = {}) {
  const canvas = el('canvas', { width: cols, height: rows, ...attributes });
  const context = canvas.getContext('2d');
  const image = context.createImageData(cols, rows);
  values.forEach((x, i) => image.data.set([...colour(x), 255], i * 4));
  context.putImageData(image, 0, 0);
  return canvas;
}

// The row and column of a picture under the mouse, clamped to the picture. Browsers round the
// position of a box to whole pixels of the screen.
export function cellAt(event, node, { rows, cols }) {
  const box = node.getBoundingClientRect();
  const fine = devicePixelRatio || 1;
  const at = (pointed, from, length, count) => {
    const share = (pointed - Math.round(from * fine) / fine) / length;
    return Math.max(0, Math.min(count - 1, Math.floor(share * count)));
  };
  return [at(event.clientY, box.top, box.height, rows),
    at(event.clientX, box.left, box.width, cols)];
}

// The width of a text in pixels, so that a layout can reserve space for labels.
const pen = document.createElement('canvas').getContext('2d');
export function widthOf(text, font = '13px system-ui, sans-serif') {
  pen.font = font;
  return pen.measureText(text).width;
}

// The children of a <text> that is at most `width` wide. A longer text is cut with an ellipsis, and
// its title is the full text.
export function cut(text, width, font) {
  if (widthOf(text, font) <= width) return [text];
  const letters = [...text];
  while (letters.length > 1 && widthOf(`${letters.join('')}…`, font) > width) letters.pop();
  return [`${letters.join('')}…`, svg('title', {}, text)];
}
