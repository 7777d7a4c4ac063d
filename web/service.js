// What the page asks the server it came from.

import { streamed } from './stream.js';

// A page that `fovea show --html` wrote holds its answers, and there is no server.
const kept = document.getElementById('recorded');
export const recorded = kept ? JSON.parse(kept.textContent) : null;

// Kept until the tab is closed, if the browser allows it.
const KEY = 'fovea-api-key';
function storage(act) {
  try {
    return act(sessionStorage);
  } catch {
    return null;
  }
}
let key = (!recorded && storage((kept) => kept.getItem(KEY))) || '';
export function useKey(text) {
  key = text.trim();
  storage((kept) => kept.setItem(KEY, key));
}

// Whether the last answer was that a key is missing, unknown or not allowed.
let refused = false;
export const needsKey = () => refused;
const ASKS_FOR_KEY = /API key/;

// The server's answer; an Error with its words where it refuses.
async function reply(path, body, signal) {
  if (recorded) throw new Error('This page is a file and can ask nobody; fovea serve can.');
  const headers = { 'Content-Type': 'application/json' };
  if (key) headers.Authorization = `Bearer ${key}`;
  const posted = { method: 'POST', headers, body: JSON.stringify(body), signal };
  const got = await fetch(path, body ? posted : { headers }).catch((error) => {
    if (error.name === 'AbortError') throw error;
    throw new Error('The server does not answer. Is fovea serve still running?');
  });
  refused = false;
  if (got.ok) return got;
  const { error = `the server answered ${got.status}` } = await got.json().catch(() => ({}));
  refused = ASKS_FOR_KEY.test(error);
  if (refused && !key)
    throw new Error('This server requires an API key. Enter yours below; the operator of the '
      + 'server issues keys.');
  throw new Error(error);
}

const ask = async (path, body) => (await reply(path, body)).json();

export const models = async () => recorded?.models ?? ask('/v1/models');
export const languages = async () => recorded?.languages ?? ask('/languages');

const answers = new Map();  // of this visit: going back to a model asks nothing
const wish = (path, body) => path + JSON.stringify(body ?? null);

function remember(question, answer) {
  answers.set(question, answer);
  if (answers.size > 50) answers.delete(answers.keys().next().value);
  return answer;
}

// A question whose answer does not change.
async function once(path, body, get = ask) {
  const question = wish(path, body);
  return answers.get(question) ?? remember(question, await get(path, body));
}

const named = ({ name, source, target }) => ({ model: name, source, target });

// fields: more of the request, as docs/serve.md names them. A listener {grown, signal} is told the
// text as it grows, and may call it off.
export async function translate(text, model, fields = {}, listener = null) {
  if (recorded && Object.keys(fields).length === 0) return recorded.reply;
  const stream = async (path, body) => streamed(
    (await reply('/v1/translate/stream', body, listener.signal)).body, listener.grown);
  const body = {
    q: text, ...named(model), attention: true, beam_size: 4, n_best: 4, ...fields,
  };
  try {
    return await once('/translate', body, listener ? stream : ask);
  } catch (error) {  // beyond the service's limit for attention, the text is translated without it
    if (!error.message.includes('the attention of this text takes more than')) throw error;
    const reply = await once('/translate', { ...body, attention: false });
    return { ...reply, attention: [], tooLarge: true };
  }
}

// One row of attention of a text's sentence: place is {kind, layer, head, row}.
export const explain = (text, sentence, model, place) => once('/v1/explain', {
  q: text.trim(), ...named(model), sentence: sentence.number, beam_size: 4, ...place });

const query = (model, more) => new URLSearchParams({ ...named(model), ...more });
export const positions = (model, side, count) =>
  once(`/v1/positions?${query(model, { side, count })}`);
export const neighbours = (model, side, asked) =>
  once('/v1/neighbours', { ...named(model), side, ...asked });
const run = (model) => `/v1/training?${query(model)}`;
export const training = (model) => once(run(model));
export const trainingNow = async (model) => remember(wish(run(model)), await ask(run(model)));
export const trainedAttention = (model, update, q, translation) =>
  once('/v1/training/attention', { ...named(model), update, q, translation });
