// A translation while it is written: words and sentences, as server-sent events bring them.

// The events of an answer, each as soon as its last byte is there.
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let line = '';  // as far as it has come
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

// The whole answer. Before it is there, `grown` is told what stands of the text: every sentence
// that has begun, in their order, those that go on with … at their end.
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
  throw new Error('The server broke off in the middle of its answer.');
}
