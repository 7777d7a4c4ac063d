// Two attention matrices over nearly the same words: pairs of rows and columns, and the difference
// of the weights.

// A substitution costs more than one insertion or deletion and less than both together. Equal words
// are therefore paired.
const swap = (a, b) => (a === b ? 0 : 1.5);

// Pairs [i, j] of two lists of names with the least edit distance; null if one list has no partner.
export function paired(a, b) {
  const cost = Array.from({ length: a.length + 1 }, () => new Array(b.length + 1).fill(0));
  for (let i = a.length; i >= 0; --i)
    for (let j = b.length; j >= 0; --j) {
      if (i === a.length || j === b.length) cost[i][j] = a.length - i + b.length - j;
      else cost[i][j] = Math.min(cost[i + 1][j + 1] + swap(a[i], b[j]),
        cost[i + 1][j] + 1, cost[i][j + 1] + 1);
    }
  const pairs = [];
  for (let i = 0, j = 0; i < a.length || j < b.length;) {
    const both = i < a.length && j < b.length
      && cost[i][j] === cost[i + 1][j + 1] + swap(a[i], b[j]);
    if (both) pairs.push([i++, j++]);
    else if (i < a.length && cost[i][j] === cost[i + 1][j] + 1) pairs.push([i++, null]);
    else pairs.push([null, j++]);
  }
  return pairs;
}

// The index of the pair that contains element `at` of one of the lists, or null.
export function placed(pairs, side, at) {
  if (at === null) return null;
  const found = pairs.findIndex((one) => one[side] === at);
  return found < 0 ? null : found;
}

function names(pairs, a, b) {
  return pairs.map(([i, j]) => {
    if (i === null) return `+ ${b[j]}`;
    if (j === null) return `− ${a[i]}`;
    return a[i] === b[j] ? a[i] : `${a[i]} ⇒ ${b[j]}`;
  });
}

// b − a. A row or column that only one of them has counts as 0 in the other. rowPairs and colPairs
// name the rows and columns of both.
export function difference(a, b) {
  const rowPairs = paired(a.rowNames, b.rowNames);
  const colPairs = paired(a.colNames, b.colNames);
  const value = (m, i, j) => (i === null || j === null ? 0 : m.at(i, j));
  const weights = new Float64Array(rowPairs.length * colPairs.length);
  rowPairs.forEach(([i, i2], row) => colPairs.forEach(([j, j2], col) => {
    weights[row * colPairs.length + col] = value(b, i2, j2) - value(a, i, j);
  }));
  return {
    rows: rowPairs.length, cols: colPairs.length, weights, rowPairs, colPairs,
    rowNames: names(rowPairs, a.rowNames, b.rowNames),
    colNames: names(colPairs, a.colNames, b.colNames), mechanism: b.mechanism,
    at: (row, col) => weights[row * colPairs.length + col],
  };
}
