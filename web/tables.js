// A matrix as text for other programs.

const SPECIAL = {
  '\\': '\\textbackslash{}', '{': '\\{', '}': '\\}', $: '\\$', '&': '\\&', '#': '\\#', '%': '\\%',
  _: '\\_', '^': '\\textasciicircum{}', '~': '\\textasciitilde{}', '<': '\\textless{}',
  '>': '\\textgreater{}',
};
const latex = (text) => text.replace(/[\\{}$&#%_^~<>]/g, (c) => SPECIAL[c])
  .replace(/[\u0000-\u001f\u007f]/g, ' ');

// A picture for a paper: \usepackage{tikz}. A darker cell is a larger weight.
export function tikz(m) {
  const lines = ['% \\usepackage{tikz}; names that are not ASCII need lualatex or xelatex',
    '\\begin{tikzpicture}[x=5mm, y=-5mm, font=\\footnotesize]'];
  m.colNames.forEach((name, j) => lines.push(
    `\\node[rotate=45, anchor=west] at (${j + 0.5}, -0.2) {${latex(name)}};`));
  for (let i = 0; i < m.rows; ++i) {
    lines.push(`\\node[anchor=east] at (-0.1, ${i + 0.5}) {${latex(m.rowNames[i])}};`);
    for (let j = 0; j < m.cols; ++j) {
      const share = Math.round(100 * Math.min(1, m.at(i, j)));
      if (share > 0)
        lines.push(`\\fill[blue!60!black!${share}!white] (${j}, ${i}) rectangle ++(1, 1);`);
    }
  }
  lines.push(`\\draw[gray!50, very thin] (0, 0) grid (${m.cols}, ${m.rows});`,
    '\\end{tikzpicture}');
  return `${lines.join('\n')}\n`;
}

// The chosen matrix with its sentence, kind, layer, head and unit.
export function json(m, sentence, { kind, layer, head, unit }) {
  const weights = [];
  for (let i = 0; i < m.rows; ++i)
    weights.push(m.colNames.map((_, j) => Number(m.at(i, j).toFixed(4))));
  const which = (n) => (n >= 0 ? n : n === -2 ? 'maximum' : 'mean');
  return `${JSON.stringify({
    source: sentence.source.text, translation: sentence.target.text, mechanism: m.mechanism, kind,
    layer: which(layer), head: which(head), unit, rows: m.rowNames, columns: m.colNames, weights,
  }, null, 1)}\n`;
}
