"""Tests of streamed translations: words as they arrive, errors, and cancelled requests."""

import json

from controls import ready_after
from server import Server
from expected import check, equal, post

LONG = ("A small dog runs through the snow.\n\nThe weather is nice today, and the children play in "
        "the garden behind the house.")
# Replaces fetch(), so that a test controls when the events of a stream reach the page.
HELD = r"""(() => { const real = window.fetch; window.held = [];
  window.fetch = async (path, how) => {
    if (path !== '/v1/translate/stream') return real(path, how);
    const reply = await real(path, { ...how, signal: undefined });
    const events = (await reply.text()).split('\n\n').filter(Boolean);
    const turn = { events, signal: how.signal };
    const body = new ReadableStream({ start(way) {
      turn.say = (text) => { const bytes = new TextEncoder().encode(text);
        for (const byte of bytes) way.enqueue(Uint8Array.of(byte)); };
      turn.give = (count) => turn.say(events.splice(0, count).map((e) => `${e}\n\n`).join(''));
      turn.end = () => way.close(); } });
    window.held.push(turn);
    return new Response(body); }; })()"""


def submit(page, text):
    page.browser.value(f"document.querySelector('#text').value = {json.dumps(text)};"
                       "document.querySelector('#ask').requestSubmit()")


def held(page, text):
    """Submits a text and returns the events of its stream, which are held back."""
    number = page.browser.value("window.held.length")
    submit(page, text)
    page.browser.wait(f"window.held.length > {number}")
    events = page.browser.value(f"window.held[{number}].events")
    parts = [event.split("\n") for event in events]
    return [(name[7:], json.loads(data[6:])) for name, data in parts]


def wait_for_translation(page, text):
    page.browser.wait(f"document.querySelector('#translation').textContent === {json.dumps(text)}")


def words_come_as_they_are_written(page):
    page.open()
    page.browser.value(HELD)
    busy = "document.querySelector('#translation').ariaBusy"
    for text in (LONG, LONG.replace("dog", "cat").replace("garden", "snow")):
        before = page.browser.value("Number(document.body.dataset.ready)")
        events = held(page, text)
        equal(events[-1][0], "done", "the last event")
        check(sum(name == "words" for name, _ in events) > 2, f"few words: {events[:-1]}")
        begun, gaps = {}, {}
        for name, data in events[:-1]:
            number = data["sentence"]
            old = begun.get(number, "").removesuffix("…")
            begun[number] = (old + data["added"] + "…" if name == "words"
                             else data["translatedText"])
            gaps[number] = data["before"]
            page.browser.value("window.held.at(-1).give(1)")
            wait_for_translation(page, "".join(gaps[n] + begun[n] for n in sorted(begun)).strip())
            equal(page.browser.value(busy), "true", "aria-busy")
        equal(len(begun), 2, "sentences")
        page.browser.value("window.held.at(-1).give(1)")
        page.browser.wait(f"Number(document.body.dataset.ready) > {before}")
        wanted = post(page, "/translate", q=text, beam_size=4, n_best=4)["translatedText"]
        check("\n\n" in wanted, f"one paragraph: {wanted!r}")
        equal((page.text("#translation"), page.browser.value(busy)), (wanted, "false"), "the end")
    ready_after(page, lambda: submit(page, LONG))
    equal(page.browser.value("window.held.length"), 2, "number of streams")


def streams_that_fail(page):
    page.open()
    page.browser.value(HELD)
    late = r'event: error\ndata: {"error":"The translation took too long"}\n\n'
    for number, (end, message) in enumerate((
            (f"say('{late}')", "The translation took too long"),
            ("end()", "The server closed the connection before the end of its answer."))):
        held(page, LONG.replace("dog", f"number {number}"))
        page.browser.value("window.held.at(-1).give(1)")
        page.browser.wait("document.querySelector('#translation').textContent.endsWith('…')")
        ready_after(page, lambda: page.browser.value(f"window.held.at(-1).{end}"))
        equal((page.text("#message"), page.text("#translation")), (f"{message} Try again", ""), end)
    with Server(page, "--req-limit", "2", "--char-limit", "30"):
        page.open(text="A text that is longer than thirty.")
        check("exceeds text limit (30)" in page.text("#message"), page.text("#message"))
        ready_after(page, lambda: submit(page, "A dog."))
        equal((page.text("#message"), page.text("#translation")), ("", "Ein Hund."), "a short one")
        ready_after(page, lambda: submit(page, "A cat."))
        equal((page.text("#message"), page.text("#translation")),
              ("Slowdown: 2 per 1 minute Try again", ""), "too many")
        page.browser.logs = [line for line in page.browser.logs if "status of 4" not in line]
        page.browser.requests = [url for url in page.browser.requests
                                 if not url.startswith(page.url)]


def a_new_text_calls_the_old_one_off(page):
    page.open()
    page.browser.value(HELD)
    held(page, LONG)
    page.browser.value("window.held[0].give(1)")
    page.browser.wait("document.querySelector('#translation').textContent.endsWith('…')")
    equal(page.browser.value("window.held[0].signal.aborted"), False, "called off too early")
    ready_after(page, lambda: (held(page, "A dog."),
                               page.browser.value("window.held[1].give(100)")))
    equal(page.browser.value("window.held[0].signal.aborted"), True, "the old one is called off")
    page.browser.value("(window.held[0].give(2), new Promise((done) => setTimeout(done, 60)))")
    equal((page.text("#translation"), page.text("#message")), ("Ein Hund.", ""), "the new one")
    page.open()  # the same with the service's own answers
    submit(page, LONG)
    ready_after(page, lambda: submit(page, "A dog."))
    equal((page.text("#translation"), page.text("#message")), ("Ein Hund.", ""), "the new one")


SHIPPED = [words_come_as_they_are_written, streams_that_fail, a_new_text_calls_the_old_one_off]
