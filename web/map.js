// Alignment: queries down, keys across. A darker cell is a larger weight.

import { svg, widthOf, clear, cut, el, pixels } from './dom.js';
import { blues, css, ink } from './colours.js';
import { choices, largest } from './attention.js';
import { errorRate, links } from './gold.js';
import { windowed } from './overview.js';
import { pin, point } from './state.js';

const MOST = 80 * 80;  // cells as separate elements; a larger map is one picture
const SLANT = Math.SQRT1_2;
const LONGEST = 180;  // the longest name, in points
const SMALLEST = 14;  // the smallest cell in points, except in pictures
const LARGEST = 46;

const isEnd = (name) => name === '</s>' || name === '<s>';

// The layout of a drawing that should be at most `room` wide.
function measure(m, room, largestCell, sums) {
  const wide = (name) => Math.min(LONGEST, widthOf(name));
  const left = Math.max(...m.rowNames.map(wide)) + 14;
  const top = Math.max(...m.colNames.map(wide)) * SLANT + 26;
  const right = Math.max(sums ? 52 : 8, wide(m.colNames[m.cols - 1]) * SLANT + 8);
  const fits = Math.floor((room - left - right) / m.cols);
  const cell = Math.max(m.cols > 80 ? 8 : SMALLEST, Math.min(largestCell, fits));
  return {
    left, top, cell, width: left + m.cols * cell + right, height: top + m.rows * cell + 8,
  };
}

function picture(m, place, { gamma, paint }) {
  const canvas = pixels(m.weights, { ...m, colour: (w) => paint(w, gamma) });
  return svg('image', {
    href: canvas.toDataURL(), x: place.left, y: place.top, width: m.cols * place.cell,
    height: m.rows * place.cell, preserveAspectRatio: 'none', 'image-rendering': 'pixelated',
  });
}

function cells(m, place, how) {
  if (m.rows * m.cols > MOST) return picture(m, place, how);
  const { left, top, cell } = place;
  const group = svg('g', { class: 'cells' });
  for (let i = 0; i < m.rows; ++i)
    for (let j = 0; j < m.cols; ++j) {
      const weight = m.at(i, j);
      const colour = how.paint(weight, how.gamma);
      const value = m.masked?.(i, j) ? 'masked' : weight.toFixed(3);
      const label = `${m.rowNames[i]} → ${m.colNames[j]} = ${value}`;
      group.append(svg('rect', {
        x: left + j * cell, y: top + i * cell, width: cell, height: cell, fill: css(colour),
        class: 'grid', role: 'img', 'aria-label': label, 'data-weight': weight.toFixed(4),
      }));
      if (cell >= 28 && Math.abs(weight) >= 0.01)
        group.append(number(place, i, j, weight, ink(colour)));
    }
  return group;
}

// Cells that a step must not attend to, each crossed by one line.
function masked(m, { left, top, cell }) {
  const lines = [];
  for (let i = 0; i < m.rows; ++i)
    for (let j = 0; j < m.cols; ++j)
      if (m.masked(i, j))
        lines.push(`M${left + j * cell} ${top + (i + 1) * cell}l${cell} ${-cell}`);
  return svg('path', { d: lines.join(''), class: 'masked-cells', 'pointer-events': 'none' });
}

function number({ left, top, cell }, i, j, weight, colour) {
  const text = (weight < 0 ? '−' : '') + Math.abs(weight).toFixed(2);
  const size = cell >= 40 ? 13 : 11;
  const fits = (cell - 3) / widthOf(text, `${size}px system-ui, sans-serif`);
  const node = svg('text', {
    x: left + (j + 0.5) * cell, y: top + (i + 0.5) * cell + 4, 'text-anchor': 'middle',
    'pointer-events': 'none',
  }, text);
  node.style.fill = colour;
  node.style.fontSize = `${Math.max(8, Math.floor(size * Math.min(1, fits)))}px`;
  return node;
}

// Each side of the names is a separate group, so that it can stay in place while the map scrolls.
function names(m, place, numbers) {
  const { left, top, cell } = place;
  const each = Math.max(1, Math.ceil(12 / cell));  // if cells are small, only some names
  const some = (all, draw) => all.map((name, i) => (i % each === 0 ? draw(name, i) : null));
  const down = (i) => top + (i + 0.5) * cell + 4;
  const across = some(m.colNames, (name, j) => {
    const x = left + (j + 0.5) * cell;
    return svg('text', {
      x, y: top - 8, transform: `rotate(-45 ${x} ${top - 8})`, 'data-col': j,
      class: isEnd(name) ? 'end' : null,
    }, cut(name, LONGEST));
  });
  const beside = some(m.rowNames, (name, i) => svg('text', {
    x: left - 8, y: down(i), 'text-anchor': 'end', 'data-row': i, class: isEnd(name) ? 'end' : null,
  }, cut(name, LONGEST)));
  const sums = numbers && some(m.rowNames, (_, i) => svg('text', {
    x: left + m.cols * cell + 8, y: down(i), class: 'soft sum',
    'data-sum': m.sums[i].toFixed(4),
  }, `Σ ${m.sums[i].toFixed(2)}`));
  const why = 'The sum of the row.';
  return svg('g', { class: 'names' }, sums ? svg('g', {}, svg('title', {}, why), sums) : null,
    svg('g', { class: 'across' }, across), svg('g', { class: 'beside' }, beside));
}

// Names stay visible while the window around the drawing scrolls: each side moves with the window,
// on a background that hides the cells below. A saved drawing has no style, so the names are in
// their original place there.
function sticky(drawing, { left, top, width, height }) {
  const paper = (size) => svg('rect', { ...size, class: 'paper' });
  const under = top - 4;  // the name of the first row may be taller than its cell
  const sides = {
    beside: drawing.querySelector('.beside'), across: drawing.querySelector('.across'),
    corner: svg('g', { class: 'corner' }, paper({ width: left, height: under })),
  };
  sides.beside.prepend(paper({ y: top, width: left, height: height - top }));
  sides.across.prepend(paper({ width, height: under }));
  drawing.querySelector('.names').append(sides.corner);
  return (x, y) => {
    sides.beside.style.transform = `translate(${x}px, 0)`;
    sides.across.style.transform = `translate(0, ${y}px)`;
    sides.corner.style.transform = `translate(${x}px, ${y}px)`;
  };
}

function dots(m, { left, top, cell }) {
  const group = svg('g', { class: 'dots', 'pointer-events': 'none' });
  for (let i = 0; i < m.rows; ++i) {
    const j = largest(m, i);
    group.append(svg('circle', {
      cx: left + (j + 1) * cell - cell / 6, cy: top + i * cell + cell / 6,
      r: Math.max(1.5, cell / 14), fill: '#ff922b',
    }));
  }
  return group;
}

// The separators before </s>.
function ends(m, { left, top, cell }) {
  const group = svg('g', { 'pointer-events': 'none' });
  const line = (x1, y1, x2, y2) => group.append(
    svg('line', { x1, y1, x2, y2, stroke: 'currentColor', 'stroke-opacity': 0.55 }));
  const right = left + m.cols * cell;
  const bottom = top + m.rows * cell;
  if (m.colNames[m.cols - 1] === '</s>') line(right - cell, top, right - cell, bottom);
  if (m.rowNames[m.rows - 1] === '</s>') line(left, bottom - cell, right, bottom - cell);
  return group;
}

// A hollow square for each reference link, dashed if the link is only possible.
function squares(m, { left, top, cell }, gold) {
  const group = svg('g', { class: 'gold', 'pointer-events': 'none' });
  for (const link of gold.possible) {
    const [j, i] = link.split('-').map(Number);
    if (i < m.rows && j < m.cols) group.append(svg('rect', {
      x: left + j * cell + 3, y: top + i * cell + 3, width: cell - 6, height: cell - 6,
      fill: 'none', 'stroke-width': 2, 'data-link': link,
      'stroke-dasharray': gold.sure.has(link) ? null : '3 3',
    }));
  }
  return group;
}

// The cell size with which the maps of one line fit into `room`.
function cellOn(line, room, largestCell) {
  const beside = line.reduce((sum, m) => {
    const { width, cell } = measure(m, room, largestCell, false);
    return sum + width - m.cols * cell;
  }, 0);
  return Math.floor((room - beside) / line.reduce((sum, m) => sum + m.cols, 0));
}

// The common cell size of several maps: side by side if they fit, otherwise on several lines, as
// the page wraps them.
export function cellOf(maps, room, largestCell) {
  for (let count = maps.length; count > 0; --count) {
    const lines = [];
    for (let at = 0; at < maps.length; at += count) lines.push(maps.slice(at, at + count));
    const cell = Math.min(largestCell, ...lines.map((line) => cellOn(line, room, largestCell)));
    if (cell >= SMALLEST) return cell;
  }
  return SMALLEST;
}

// The drawing, with a method `mark(row, col)` for the cross-hair. If `sticks` is true, it also has
// a method `follow(x, y)` for a window that has scrolled to (x, y). `paint` returns the colour of
// a weight. `tell` receives the cell under the mouse, `choose` the clicked cell.
export function heatmap(m, { room, gamma, cell = LARGEST, live = true, paint = blues, sums = live,
  dotted = true, gold = null, tell = live ? point : null, choose = null, sticks = false }) {
  const summed = sums && Boolean(m.sums);
  const place = measure(m, room, cell, summed);
  const { left, top } = place;
  const hair = svg('g', { class: 'cross-hair' });
  const drawing = svg('svg', {
    width: place.width, height: place.height, viewBox: `0 0 ${place.width} ${place.height}`,
    role: 'figure', 'aria-label': 'Attention weights', class: `heat-map${choose ? ' choose' : ''}`,
  }, cells(m, place, { gamma, paint }), m.masked ? masked(m, place) : null, ends(m, place),
  dotted ? dots(m, place) : null, gold && squares(m, place, gold), hair, names(m, place, summed));
  drawing.mark = (row, col) => {
    clear(hair);
    if (row !== null && row < m.rows) hair.append(svg('rect', {
      x: left, y: top + row * place.cell, width: m.cols * place.cell, height: place.cell }));
    if (col !== null && col < m.cols) hair.append(svg('rect', {
      x: left + col * place.cell, y: top, width: place.cell, height: m.rows * place.cell }));
    for (const text of drawing.querySelectorAll('.names [data-col], .names [data-row]'))
      text.classList.toggle('on', Number(text.dataset.col ?? -1) === col
        || Number(text.dataset.row ?? -1) === row);
  };
  const gone = { x: 0, y: 0 };  // the scroll position: sticky names hide the cells below them
  if (sticks) {
    const move = sticky(drawing, place);
    drawing.follow = (x, y) => move(gone.x = x, gone.y = y);
  }
  const at = (event) => {
    const box = drawing.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left - left, event.clientY - box.top - top];
    const [col, row] = [Math.floor(x / place.cell), Math.floor(y / place.cell)];
    return [y >= gone.y && row < m.rows ? row : null, x >= gone.x && col < m.cols ? col : null];
  };
  if (tell) {
    drawing.addEventListener('mousemove', (event) => tell(...at(event)));
    drawing.addEventListener('mouseleave', () => tell(null, null));
  }
  if (choose)
    drawing.addEventListener('click', (event) => {
      const [row, col] = at(event);
      if (row !== null && col !== null) choose(row, col);
    });
  return drawing;
}

// Reference links connect words of both sides. For pieces, or within one side, they mean nothing.
const takesGold = (state) => state.unit === 'words' && state.kind === 'cross';

function judged(sentence, state, gold) {
  if (!takesGold(state))
    return el('p', { class: 'note' }, 'Reference links connect words of both sides: choose words '
      + 'and cross-attention.');
  if (gold.bad.length > 0)
    return el('p', { class: 'note' }, 'Reference links look like 0-0 1-2 3?4; not understood: ',
      gold.bad.slice(0, 5).join(' '));
  const rate = errorRate(sentence, state, gold);
  return el('p', { class: 'note', 'data-aer': rate.toFixed(4) },
    `Alignment error rate ${(100 * rate).toFixed(1)} % against the squares.`);
}

// Notes that a reader needs to understand this map.
function hint(m, unit, sentence) {
  if (m.masked)
    return 'Rows are queries, columns keys: the decoder’s inputs, which begin with <s>. A step '
      + 'cannot attend to later inputs: these cells are masked, and crossed out.';
  if (choices(sentence) && unit === 'words')
    return 'Hard attention chooses one position for each piece. The row of a word with several '
      + 'pieces is the mean of their choices; choose pieces to see each.';
  return '';
}

export const view = {
  id: 'map',
  title: 'Alignment',
  tools: ['kind', 'layer', 'head', 'unit', 'gamma', 'gold'],
  draw(stage, { m, sentence, state }) {
    const given = state.gold.trim() ? links(state.gold) : null;
    const gold = given && takesGold(state) ? given : null;
    const large = m.rows * m.cols > MOST;
    const room = stage.clientWidth - (large ? 210 : 30);
    const sticks = large || measure(m, room, LARGEST, true).width > stage.clientWidth - 10;
    const drawing = heatmap(m, { room, gamma: state.gamma, gold, choose: pin, sticks });
    if (given) stage.append(judged(sentence, state, given));
    if (sticks) {
      const all = windowed(drawing, m, { gamma: state.gamma, height: innerHeight * 0.8 });
      stage.append(all);
      all.settle();
    } else {
      stage.append(drawing);
    }
    const text = hint(m, state.unit, sentence);
    if (text) stage.append(el('p', { class: 'note' }, text));
    return { drawing, point: ({ row, col }) => drawing.mark(row, col) };
  },
};
