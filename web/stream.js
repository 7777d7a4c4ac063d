// A streamed translation: words and sentences, received as server-sent events.

// The events of an answer, each as soon as it is complete.
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let line = '';  // the received part of the current line
  let name = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const [rest, ...begun] = value.split('\n');
    line += rest;
    for (const next of begun) {
      if (line.startsWith('event: ')) name = line.slice(7);
      if (line.startsWith('data: ')) yield { name, data: JSON.parse(line.slice(6)) };
      line = next;
    }
  }
}

// The complete answer. Before it is complete, `grown` receives the text so far: every sentence that
// has begun, in order. Unfinished sentences end with …
export async function streamed(body, grown) {
  const sentences = [];
  for await (const { name, data } of events(body)) {
    if (name === 'done') return data;
    if (name === 'error') throw new Error(data.error);
    const { text = '' } = sentences[data.sentence] ?? {};
    const { before } = data;
    sentences[data.sentence] = name === 'sentence' ? { before, text: data.translatedText, end: '' }
      : { before, text: text + data.added, end: '…' };
    grown(Object.values(sentences).map((s) => s.before + s.text + s.end).join('').trim());
  }
  throw new Error('The server closed the connection before the end of its answer.');
}
