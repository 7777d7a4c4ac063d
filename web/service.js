// What the page asks the server it came from.

// A page that `fovea show --html` wrote holds its answers, and there is no server.
const kept = document.getElementById('recorded');
export const recorded = kept ? JSON.parse(kept.textContent) : null;

let key = '';
export function useKey(text) {
  key = text.trim();
}

async function ask(path, body) {
  if (recorded) throw new Error('This page is a file and can ask nobody; fovea serve can.');
  const headers = { 'Content-Type': 'application/json' };
  if (key) headers.Authorization = `Bearer ${key}`;
  const reply = await fetch(path, body ? { method: 'POST', headers, body: JSON.stringify(body) }
    : { headers });
  const json = await reply.json().catch(() => ({}));
  if (!reply.ok) throw new Error(json.error ?? `the server answered ${reply.status}`);
  return json;
}

export const models = async () => recorded?.models ?? ask('/v1/models');
export const languages = async () => recorded?.languages ?? ask('/languages');

const answers = new Map();  // of this visit: going back to a model asks nothing

// A question whose answer does not change.
async function once(path, body) {
  const wish = path + JSON.stringify(body ?? null);
  if (!answers.has(wish)) {
    answers.set(wish, await ask(path, body));
    if (answers.size > 50) answers.delete(answers.keys().next().value);
  }
  return answers.get(wish);
}

const named = ({ name, source, target }) => ({ model: name, source, target });

// fields: more of the request, as docs/serve.md names them.
export async function translate(text, model, fields = {}) {
  if (recorded && Object.keys(fields).length === 0) return recorded.reply;
  return once('/translate', {
    q: text, ...named(model), attention: true, beam_size: 4, n_best: 4, ...fields });
}

// One row of attention of a text's sentence: place is {kind, layer, head, row}.
export const explain = (text, sentence, model, place) => once('/v1/explain', {
  q: text.trim(), ...named(model), sentence: sentence.number, beam_size: 4, ...place });

const query = (model, more) => new URLSearchParams({ ...named(model), ...more });
export const positions = (model, side, count) =>
  once(`/v1/positions?${query(model, { side, count })}`);
export const neighbours = (model, side, asked) =>
  once('/v1/neighbours', { ...named(model), side, ...asked });
export const training = (model) => once(`/v1/training?${query(model)}`);
export const trainedAttention = (model, update, q, translation) =>
  once('/v1/training/attention', { ...named(model), update, q, translation });
