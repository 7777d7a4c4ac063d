// The server's warnings about text that the model cannot read.

import { el } from './dom.js';

const names = new Intl.DisplayNames(['en'], { type: 'language' });

// A model that reads this language, if possible one that writes the source language of the current
// model.
function reader(models, language, now) {
  const able = models.filter((m) => m.source === language);
  return able.find((m) => m.target === now.source) ?? able[0];
}

// A line for each warning. If another model reads the language of the text, a button chooses it.
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
