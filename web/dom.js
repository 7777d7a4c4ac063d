// Elements. Text of a sentence only ever becomes a text node: nothing in it is markup.

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

// A word of a sentence: right-to-left where its letters are.
export function word(text, attributes = {}) {
  return el('bdi', { dir: 'auto', ...attributes }, text);
}

export function clear(node) {
  node.replaceChildren();
  return node;
}

// Each of the list: value, text and, where it has one, the name of its group.
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

// A canvas of rows × cols numbers, a pixel each.
export function pixels(values, { rows, cols, colour }, attributes = {}) {
  const canvas = el('canvas', { width: cols, height: rows, ...attributes });
  const context = canvas.getContext('2d');
  const image = context.createImageData(cols, rows);
  values.forEach((x, i) => image.data.set([...colour(x), 255], i * 4));
  context.putImageData(image, 0, 0);
  return canvas;
}

// The row and column of a picture under the mouse, the nearest one at its edges. Browsers draw a
// box at whole pixels of the screen, whatever fraction its place has.
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

// How wide a text will be, so that labels get the room they need.
const pen = document.createElement('canvas').getContext('2d');
export function widthOf(text, font = '13px system-ui, sans-serif') {
  pen.font = font;
  return pen.measureText(text).width;
}

// A text for a drawing that is no wider than `width`: a longer one ends with an ellipsis and has
// all of it as its title.
export function cut(text, width, font) {
  if (widthOf(text, font) <= width) return [text];
  const letters = [...text];
  while (letters.length > 1 && widthOf(`${letters.join('')}…`, font) > width) letters.pop();
  return [`${letters.join('')}…`, svg('title', {}, text)];
}
