// The translation as words that react to the mouse, and the line that reads out weights.

import { clear, el, word } from './dom.js';

// The parts of a text: words of sentences with their indices, and the text between them.
function parts(text, sentences) {
  const found = [];
  let at = 0;
  sentences.forEach(({ target }, number) => target.words.slice(0, -1).forEach((name, row) => {
    const begin = name === '' ? -1 : text.indexOf(name, at);
    if (begin < 0) return;
    found.push(text.slice(at, begin), { name, number, row });
    at = begin + name.length;
  }));
  return [...found, text.slice(at)];
}

// Writes the translation into `box`. tell(number, row) receives the sentence and the word under the
// mouse, choose(number, row) those that are clicked.
export function say(box, text, sentences, { tell, choose }) {
  clear(box).append(...parts(text, sentences).map((part) => (typeof part === 'string' ? part
    : word(part.name, {
      'data-row': part.row, 'data-sentence': part.number,
      onmouseenter: () => tell(part.number, part.row), onmouseleave: () => tell(part.number, null),
      onclick: () => choose(part.number, part.row),
    }))));
}

export function mark(box, number, row) {
  for (const node of box.querySelectorAll('[data-row]'))
    node.classList.toggle('on', row !== null && Number(node.dataset.row) === row
      && Number(node.dataset.sentence) === number);
}

// The largest weights of a row or a column: "dog 0.598, small 0.101, A 0.087".
function most(names, weights) {
  return names.map((name, i) => [name, weights[i]]).sort((a, b) => b[1] - a[1]).slice(0, 3)
    .flatMap(([name, weight], i) => [i === 0 ? '' : ', ', word(name), ` ${weight.toFixed(3)}`]);
}

const inRow = (m, row) => m.colNames.map((_, j) => m.at(row, j));
const inColumn = (m, col) => m.rowNames.map((_, i) => m.at(i, col));

// The weights of a row, a column or a cell of the matrix as nodes. `value` formats a cell.
export function reading(m, { row, col }, value = (i, j) => ` = ${m.at(i, j).toFixed(3)}`) {
  const inRows = row !== null && row < m.rows;
  const inCols = col !== null && col < m.cols;
  const name = (text) => el('b', {}, word(text));
  if (inRows && inCols)
    return [name(m.rowNames[row]), ' → ', name(m.colNames[col]), value(row, col)];
  if (inRows && m.rowOf)
    return [name(m.rowNames[row]), ' → ', ...most(m.colNames, inRow(m, row))];
  if (inCols && m.rowOf)
    return [name(m.colNames[col]), ' ← ', ...most(m.rowNames, inColumn(m, col))];
  if (inRows || inCols) return [name(inRows ? m.rowNames[row] : m.colNames[col])];
  return ['Point at a cell or a word to read its weights.'];
}
