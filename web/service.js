// Requests to the server that delivered the page.

import { streamed } from './stream.js';

// A page written by `fovea show --html` contains the answers. It has no server.
const kept = document.getElementById('recorded');
export const recorded = kept ? JSON.parse(kept.textContent) : null;

// The API key is kept until the tab is closed, if the browser allows it.
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

// Whether the last answer said that the key is missing, unknown or not allowed.
let refused = false;
export const needsKey = () => refused;
const ASKS_FOR_KEY = /API key/;

// The server's answer. If the server refuses, throws an Error with the server's message.
async function reply(path, body, signal) {
  if (recorded) throw new Error('This page has no server. Use fovea serve for new requests.');
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

const answers = new Map();  // of this visit, so that a return to an earlier choice needs no request
const wish = (path, body) => path + JSON.stringify(body ?? null);

function remember(question, answer) {
  answers.set(question, answer);
  if (answers.size > 50) answers.delete(answers.keys().next().value);
  return answer;
}

// A request whose answer does not change.
async function once(path, body, get = ask) {
  const question = wish(path, body);
  return answers.get(question) ?? remember(question, await get(path, body));
}

const named = ({ name, source, target }) => ({ model: name, source, target });

// fields: further fields of the request (docs/serve.md). A listener is {grown, signal}: `grown`
// receives the text as it grows, and `signal` can abort the request.
export async function translate(text, model, fields = {}, listener = null) {
  if (recorded && Object.keys(fields).length === 0) return recorded.reply;
  const stream = async (path, body) => streamed(
    (await reply('/v1/translate/stream', body, listener.signal)).body, listener.grown);
  const body = {
    q: text, ...named(model), attention: true, beam_size: 4, n_best: 4, ...fields,
  };
  try {
    return await once('/translate', body, listener ? stream : ask);
  } catch (error) {  // the attention exceeds the service's limit: translate without it
    if (!error.message.includes('the attention of this text takes more than')) throw error;
    const reply = await once('/translate', { ...body, attention: false });
    return { ...reply, attention: [], tooLarge: true };
  }
}

// The explanation of one row of attention of a sentence: place is {kind, layer, head, row}.
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
