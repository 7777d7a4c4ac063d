// Links that somebody made by hand, and how far the model's are from them.

import { pharaoh } from './attention.js';

// "0-0 1-2 3?4": source word first, from 0; ? (or p) where a link is possible and not sure.
export function links(text) {
  const found = { sure: new Set(), possible: new Set(), bad: [] };
  for (const part of text.split(/\s+/).filter((one) => one !== '')) {
    const match = /^(\d+)([-?p])(\d+)$/.exec(part);
    if (!match) found.bad.push(part);
    else {
      const link = `${Number(match[1])}-${Number(match[3])}`;
      if (match[2] === '-') found.sure.add(link);
      found.possible.add(link);
    }
  }
  return found;
}

// AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|), of the largest weight of each target word.
export function errorRate(sentence, choice, gold) {
  const made = pharaoh(sentence, choice).split(' ').filter((one) => one !== '');
  const both = (set) => made.filter((link) => set.has(link)).length;
  const all = made.length + gold.sure.size;
  return all > 0 ? 1 - (both(gold.sure) + both(gold.possible)) / all : 0;
}
