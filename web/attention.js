// Attention matrices of one sentence, as the service sends them, over pieces or over words.

function bytes(base64) {
  const text = atob(base64);
  return Uint8Array.from(text, (c) => c.charCodeAt(0));
}

const weights = (base64) => Float64Array.from(bytes(base64), (b) => b / 255);

// '▁' begins a word. A piece that consists of '▁' alone stays visible.
export const shown = (piece) => (piece.length > 1 ? piece.replace('▁', '') : piece);

// A muted head has no weight anywhere.
export function read(json) {
  const maps = json.attention.map((map) => ({ ...map, weights: weights(map.data),
    muted: map.sums.every((sum) => sum === 0) }));
  const series = json.mechanism.series.map((one) => {
    const values = json.extra[one.name];
    return { ...one, values: one.kind === 'distribution' ? weights(values) : values };
  });
  return { ...json, maps, series };
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

// The distribution from which hard attention chooses one position for each piece, if there is one.
// A word is the mean of its pieces and hides the choice.
export const choices = (sentence) => sentence.series.find((one) => one.kind === 'distribution');

// The choice, adapted to this sentence: a layer or head that it does not have becomes the mean. The
// default unit is words, and pieces for hard attention.
export function fitted(sentence, choice) {
  const kind = kinds(sentence).includes(choice.kind) ? choice.kind : kinds(sentence)[0];
  const layer = layers(sentence, kind).includes(choice.layer) ? choice.layer : -1;
  const all = heads(sentence, kind);
  const head = all.includes(choice.head) || (choice.head === MAXIMUM && all.length > 1)
    ? choice.head : MEAN;
  const unit = choice.unit || (choices(sentence) ? 'pieces' : 'words');
  return { ...choice, kind, layer, head, unit };
}

// One side of a matrix: the names of its rows or columns, and the index of each piece among them.
function axis(side, unit, shifted) {
  const place = side.word_of;
  const words = unit === 'words';
  const names = words ? side.words : side.tokens.map(shown);
  const of = words ? place : place.map((_, i) => i);
  if (!shifted) return { names, of };
  // The decoder's input is one step behind its output.
  return { names: ['<s>', ...names.slice(0, -1)], of: [0, ...of.slice(0, -1).map((i) => i + 1)] };
}

// Self-attention has the same names on both sides: queries and keys are the same pieces.
function axes(sentence, kind, unit) {
  const cols = kind === 'decoder' ? axis(sentence.target, unit, true)
    : axis(sentence.source, unit, false);
  return { rows: kind === 'cross' ? axis(sentence.target, unit, false) : cols, cols };
}

// One map from several: their mean, or the maximum of each weight.
function joined(maps, head) {
  const weights = new Float64Array(maps[0].weights.length);
  for (const map of maps)
    map.weights.forEach((w, i) => {
      weights[i] = head === MAXIMUM ? Math.max(weights[i], w) : weights[i] + w / maps.length;
    });
  return { ...maps[0], weights };
}

// The chosen maps without muted heads, unless all of them are muted.
function chosenMaps(sentence, { kind, layer, head }) {
  const chosen = sentence.maps.filter((m) => m.kind === kind
    && (layer < 0 || m.layer === layer) && (head < 0 || m.head === head));
  const heard = chosen.filter((m) => !m.muted);
  return heard.length > 0 ? heard : chosen;
}

// The mean of the chosen maps, or their maximum; −1 means all. For words: the sum over the pieces
// of a column's word, and the mean over the pieces of a row's word. `sums` are the sums of the rows
// before the service rounded the weights. A maximum is not a distribution and has no sums. `ahead`:
// a target piece is the query of the row that is `ahead` steps after the step that writes it.
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

// The column with the largest weight among the first `count`; if several are equal, the first.
export function largest(m, row, count = m.cols) {
  let best = 0;
  for (let j = 1; j < count; ++j) if (m.at(row, j) > m.at(row, best)) best = j;
  return best;
}

// The mean entropy of the rows in bits: 0 if a row attends to one column, log₂(cols) if it attends
// to all columns equally.
export function entropy(m) {
  let sum = 0;
  for (const w of m.weights) if (w > 0) sum -= w * Math.log2(w);
  return sum / m.rows;
}

// The column that a row would attend to if attention moved evenly from the first to the last word.
const onDiagonal = (m, i) => (m.rows > 1 ? (i * (m.cols - 1)) / (m.rows - 1) : 0);

// The mean distance of the attention from the diagonal, in words.
export function distance(m) {
  let sum = 0;
  for (let i = 0; i < m.rows; ++i)
    for (let j = 0; j < m.cols; ++j) sum += m.at(i, j) * Math.abs(j - onDiagonal(m, i));
  return sum / m.rows;
}

// The correlation between a row and the mean column that it attends to: 1 (forwards), 0
// (independent), −1 (backwards).
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

// The share of the weight on the last column, </s>. Heads with no other use often attend to it.
export function atEnd(m) {
  let sum = 0;
  for (let i = 0; i < m.rows; ++i) sum += m.at(i, m.cols - 1);
  return sum / m.rows;
}

// "0-0 1-2": source word first. The last row and column, </s>, are not words and have no links.
export function pharaoh(sentence, choice) {
  const m = matrix(sentence, { ...choice, unit: 'words' });
  const links = [];
  for (let i = 0; m.cols > 1 && i + 1 < m.rows; ++i) {
    const j = largest(m, i, m.cols - 1);
    if (m.at(i, j) > 0) links.push(`${j}-${i}`);
  }
  return links.join(' ');
}

// A table for spreadsheets. If a spreadsheet would read a cell as a formula, an apostrophe keeps it
// as text.
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
