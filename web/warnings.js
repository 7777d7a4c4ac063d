// What the model cannot read of a text, as the server reports it.

import { el } from './dom.js';

const names = new Intl.DisplayNames(['en'], { type: 'language' });

// The model that reads a language; one that writes what the other one reads, where there is one.
function reader(models, language, now) {
  const able = models.filter((m) => m.source === language);
  return able.find((m) => m.target === now.source) ?? able[0];
}

// A line for each warning. Where another model reads the text's language, a button chooses it.
export function warningLines(warnings, models, now, choose) {
  return warnings.map((warning) => {
    const text = warning.message[0].toUpperCase() + warning.message.slice(1) + '.';
    const other = warning.code === 'other_language' && reader(models, warning.language, now);
    if (!other) return el('div', {}, text);
    const direction = `${names.of(other.source)} → ${names.of(other.target)}`;
    return el('div', {}, text, ' ',
      el('button', { type: 'button', onclick: () => choose(other) }, `Switch to ${direction}`));
  });
}
