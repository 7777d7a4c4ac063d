// Attention matrices of one sentence: as the service sends them, by pieces or by words.

function bytes(base64) {
  const text = atob(base64);
  return Uint8Array.from(text, (c) => c.charCodeAt(0));
}

const weights = (base64) => Float64Array.from(bytes(base64), (b) => b / 255);

// '▁' begins a word; a piece that is nothing else still has to be seen.
export const shown = (piece) => (piece.length > 1 ? piece.replace('▁', '') : piece);

// A muted head has no weight anywhere.
export function read(json) {
  const maps = json.attention.map((map) => ({ ...map, weights: weights(map.data),
    muted: map.sums.every((sum) => sum === 0) }));
  const extra = { ...json.extra };
  if (extra.soft) extra.soft = weights(extra.soft);
  return { ...json, maps, extra };
}

export const KIND_NAMES = {
  cross: 'Cross-attention', encoder: 'Encoder self-attention',
  decoder: 'Decoder self-attention (masked)',
};

export function kinds(sentence) {
  return ['cross', 'encoder', 'decoder'].filter((k) => sentence.maps.some((m) => m.kind === k));
}

export function layers(sentence, kind) {
  const found = sentence.maps.filter((m) => m.kind === kind).map((m) => m.layer);
  return [...new Set(found)].sort((a, b) => a - b);
}

export function heads(sentence, kind) {
  const found = sentence.maps.filter((m) => m.kind === kind).map((m) => m.head);
  return [...new Set(found)].sort((a, b) => a - b);
}

export const MEAN = -1;
export const MAXIMUM = -2;  // over heads

// Hard attention chooses one place for each piece; a word, the mean of its pieces, hides that.
export const isHard = (m) => Boolean(m?.mechanism.startsWith('hard'));

// The choice as far as this sentence has it: a layer or head that it lacks becomes the mean. Where
// no unit is chosen, words; of hard attention pieces.
export function fitted(sentence, choice) {
  const kind = kinds(sentence).includes(choice.kind) ? choice.kind : kinds(sentence)[0];
  const layer = layers(sentence, kind).includes(choice.layer) ? choice.layer : -1;
  const all = heads(sentence, kind);
  const head = all.includes(choice.head) || (choice.head === MAXIMUM && all.length > 1)
    ? choice.head : MEAN;
  const unit = choice.unit || (isHard(sentence.maps[0]) ? 'pieces' : 'words');
  return { ...choice, kind, layer, head, unit };
}

// One side of a matrix: names of its rows or columns and, for each piece, its place among them.
function axis(side, unit, shifted) {
  const place = side.word_of;
  const words = unit === 'words';
  const names = words ? side.words : side.tokens.map(shown);
  const of = words ? place : place.map((_, i) => i);
  if (!shifted) return { names, of };
  // The decoder's input is one step behind its output.
  return { names: ['<s>', ...names.slice(0, -1)], of: [0, ...of.slice(0, -1).map((i) => i + 1)] };
}

// Self-attention has the same names on both sides: those of its queries and of its keys.
function axes(sentence, kind, unit) {
  const cols = kind === 'decoder' ? axis(sentence.target, unit, true)
    : axis(sentence.source, unit, false);
  return { rows: kind === 'cross' ? axis(sentence.target, unit, false) : cols, cols };
}

// One map of several: their mean, or the largest of each weight.
function joined(maps, head) {
  const weights = new Float64Array(maps[0].weights.length);
  for (const map of maps)
    map.weights.forEach((w, i) => {
      weights[i] = head === MAXIMUM ? Math.max(weights[i], w) : weights[i] + w / maps.length;
    });
  return { ...maps[0], weights };
}

// The chosen maps; of several, those of heads that are not muted.
function chosenMaps(sentence, { kind, layer, head }) {
  const chosen = sentence.maps.filter((m) => m.kind === kind
    && (layer < 0 || m.layer === layer) && (head < 0 || m.head === head));
  const heard = chosen.filter((m) => !m.muted);
  return heard.length > 0 ? heard : chosen;
}

// The mean of the chosen maps, or their maximum; −1 stands for all. Words: the sum over the pieces
// of a column's word, the mean over those of a row's. `sums` are those of the rows before the
// service rounded their weights; a maximum is no distribution and has none. `ahead`: a target piece
// is the query of the row so many steps after the step that writes it.
export function matrix(sentence, { kind, layer, head, unit }) {
  const chosen = chosenMaps(sentence, { kind, layer, head });
  if (chosen.length === 0) return null;
  const { rows, cols } = axes(sentence, kind, unit);
  const width = cols.names.length;
  const sum = new Float64Array(rows.names.length * width);
  const pieces = new Array(rows.names.length).fill(0);
  const map = joined(chosen, head);
  const sums = head === MAXIMUM ? null : new Array(rows.names.length).fill(0);
  for (let i = 0; i < map.rows; ++i) pieces[rows.of[i]] += 1;
  for (let i = 0; sums && i < map.rows; ++i)
    for (const one of chosen) sums[rows.of[i]] += one.sums[i] / chosen.length / pieces[rows.of[i]];
  for (let i = 0; i < map.rows; ++i)
    for (let j = 0; j < map.cols; ++j)
      sum[rows.of[i] * width + cols.of[j]]
        += map.weights[i * map.cols + j] / pieces[rows.of[i]];
  return {
    rows: rows.names.length, cols: width, weights: sum, rowNames: rows.names, colNames: cols.names,
    rowOf: rows.of, colOf: cols.of, mechanism: chosen[0].mechanism, kind, sums,
    ahead: kind === 'decoder' ? 1 : 0, masked: kind === 'decoder' ? (i, j) => j > i : null,
    at: (i, j) => sum[i * width + j],
  };
}

export function rowSum(m, row) {
  let sum = 0;
  for (let j = 0; j < m.cols; ++j) sum += m.at(row, j);
  return sum;
}

// The column with the largest weight, the first of equals, among the first `count`.
export function largest(m, row, count = m.cols) {
  let best = 0;
  for (let j = 1; j < count; ++j) if (m.at(row, j) > m.at(row, best)) best = j;
  return best;
}

// Of the rows, in bits, on average: 0 looks at one place, log₂ of the columns everywhere alike.
export function entropy(m) {
  let sum = 0;
  for (const w of m.weights) if (w > 0) sum -= w * Math.log2(w);
  return sum / m.rows;
}

// Where a row would look if the model went from the first word to the last at an even pace.
const onDiagonal = (m, i) => (m.rows > 1 ? (i * (m.cols - 1)) / (m.rows - 1) : 0);

// How far from there it looks on average, in words.
export function distance(m) {
  let sum = 0;
  for (let i = 0; i < m.rows; ++i)
    for (let j = 0; j < m.cols; ++j) sum += m.at(i, j) * Math.abs(j - onDiagonal(m, i));
  return sum / m.rows;
}

// Whether it goes on to the right as rows go on: the correlation of a row with the middle of what
// it looks at, from −1 (backwards) over 0 (no matter which row) to 1.
export function diagonality(m) {
  const middles = [];
  for (let i = 0; i < m.rows; ++i) {
    let sum = 0;
    for (let j = 0; j < m.cols; ++j) sum += j * m.at(i, j);
    middles.push(sum / (rowSum(m, i) || 1));
  }
  const mean = middles.reduce((a, x) => a + x, 0) / m.rows;
  const half = (m.rows - 1) / 2;
  let both = 0;
  let rows = 0;
  let cols = 0;
  middles.forEach((middle, i) => {
    both += (i - half) * (middle - mean);
    rows += (i - half) ** 2;
    cols += (middle - mean) ** 2;
  });
  return rows * cols > 1e-12 ? both / Math.sqrt(rows * cols) : 0;
}

// How much of the weight the last column, </s>, takes: heads that have nothing to say look there.
export function atEnd(m) {
  let sum = 0;
  for (let i = 0; i < m.rows; ++i) sum += m.at(i, m.cols - 1);
  return sum / m.rows;
}

// "0-0 1-2": source word first. The last row and column, </s>, take no part.
export function pharaoh(sentence, choice) {
  const m = matrix(sentence, { ...choice, unit: 'words' });
  const links = [];
  for (let i = 0; m.cols > 1 && i + 1 < m.rows; ++i) {
    const j = largest(m, i, m.cols - 1);
    if (m.at(i, j) > 0) links.push(`${j}-${i}`);
  }
  return links.join(' ');
}

// A table for spreadsheets. A cell that would be taken for a formula is kept text by an apostrophe.
export function csv(m) {
  const quoted = (text) => {
    const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const lines = [['', ...m.colNames.map(quoted)]];
  for (let i = 0; i < m.rows; ++i) {
    const row = [];
    for (let j = 0; j < m.cols; ++j) row.push(m.at(i, j).toFixed(4));
    lines.push([quoted(m.rowNames[i]), ...row]);
  }
  return `${lines.map((line) => line.join(',')).join('\r\n')}\r\n`;
}
