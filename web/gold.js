// Reference links, made by hand, and the error rate of the model's links against them.

import { pharaoh } from './attention.js';

// "0-0 1-2 3?4": source word first, counted from 0; ? (or p) marks a possible link, - a sure link.
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

// AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|); A: the largest weight of each target word.
export function errorRate(sentence, choice, gold) {
  const made = pharaoh(sentence, choice).split(' ').filter((one) => one !== '');
  const both = (set) => made.filter((link) => set.has(link)).length;
  const all = made.length + gold.sure.size;
  return all > 0 ? 1 - (both(gold.sure) + both(gold.possible)) / all : 0;
}
