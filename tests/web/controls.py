"""Tests of the controls of the page: keys, lists, switches, the address, the theme, two sentences,
models, an API key."""

import json
import os
import urllib.parse

from layout import TURNED, attributes, contrast, rgb
from server import Server
from expected import SENTENCE, Reply, ask_service, check, equal, flat, near, saved_as

TWO = f"{SENTENCE} {TURNED}"


def address(page):
    found = urllib.parse.parse_qs(page.browser.value("location.hash").lstrip("#"))
    return {name: values[0] for name, values in found.items()}


def choose(page, name, value, event="change"):
    page.browser.value(f"(() => {{ const node = document.querySelector('#{name}');"
                       f" node.value = {json.dumps(value)};"
                       f" node.dispatchEvent(new Event('{event}', {{bubbles: true}})); }})()")


def ready_after(page, act):
    """Calls `act` and waits until the page has sent its requests and redrawn."""
    before = page.browser.value("Number(document.body.dataset.ready)")
    act()
    page.browser.wait(f"Number(document.body.dataset.ready) > {before}")


def keys_choose(page):
    page.open(text=TURNED, view="player", step=2)
    for key, name, wanted in (
            ("ArrowLeft", "step", "1"), ("ArrowDown", "layer", "0"), ("ArrowDown", "layer", "1"),
            ("ArrowUp", "layer", "0"), ("]", "head", "0"), ("]", "head", "1"), ("[", "head", "0"),
            ("[", "head", None), ("[", "head", "-2"), ("3", "view", "lines"), ("5", "view", "beam"),
            ("1", "view", None)):
        page.browser.press(key)
        equal(address(page).get(name), wanted, f"{name} after {key}")
    drawing = saved_as(page, "svg", lambda: page.browser.press("s"))
    check(drawing.startswith(b"<svg"), f"s saves {drawing[:20]}")
    page.browser.value("document.querySelector('#text').focus()")
    for key in ("3", "s", "ArrowDown"):
        page.browser.press(key)
    equal(address(page).get("view"), None, "the view after a digit in the text")
    page.click("[data-view=positions]")
    page.browser.value("document.activeElement.blur()")
    page.browser.press("s")
    page.browser.wait("document.querySelector('#message').textContent.includes('no drawing')")


def the_address_keeps_every_choice(page):
    page.open(text=TURNED)
    for name, value, event in (("kind", "encoder", "change"), ("layer", "1", "change"),
                               ("head", "2", "change"), ("gamma", "0.5", "input"),
                               ("palette", "viridis", "change")):
        choose(page, name, value, event)
        equal(address(page).get(name), value, f"{name} in the address")
    page.click("[data-unit=pieces]")
    page.click("#theme")
    equal(address(page).get("theme"), "dark", "the theme in the address")
    drawn = attributes(page, ".cells rect", "data-weight", "fill")
    shared = page.browser.value("location.hash")
    page.browser.open(f"{page.url}/{shared}")
    equal(attributes(page, ".cells rect", "data-weight", "fill"), drawn, "the page at its address")
    for name, value in (("kind", "encoder"), ("layer", "1"), ("head", "2"), ("gamma", "0.5"),
                        ("palette", "viridis")):
        equal(page.browser.value(f"document.querySelector('#{name}').value"), value, name)
    equal(page.browser.value("document.querySelector('[data-unit=pieces]').ariaPressed"), "true",
          "the unit")
    page.open(text=TURNED, view="lines")
    choose(page, "hide", "0.3", "input")
    equal(address(page).get("hide"), "0.3", "hide in the address")
    weights = flat(Reply(page, TURNED).words())
    equal(len(attributes(page, ".lines path")), sum(w >= 0.3 for w in weights), "lines left")
    page.click("[data-view=map]")
    page.browser.value("document.querySelector('#gold').focus()")
    choose(page, "gold", "0-0", "input")
    equal((address(page).get("gold"), len(attributes(page, ".gold rect"))), ("0-0", 1), "gold")
    page.open(text=TURNED, layer="x", gamma="nan", head="1e999")
    near(page.numbers(".cells rect", "weight"), weights, "an address of nonsense")


def themes_change(page):
    page.open(text=TURNED)
    theme = "document.documentElement.dataset.theme"
    look = ("[document.querySelector('.cells rect').getAttribute('fill'),"
            " getComputedStyle(document.body).backgroundColor,"
            " getComputedStyle(document.body).color]")
    seen = {}
    for name in ("dark", "light"):
        page.click("#theme")
        equal(page.browser.value(theme), name, "the theme after a click")
        seen[name] = page.browser.value(look)
        check(contrast(*(rgb(c) for c in seen[name][1:])) > 7, f"{name}: {seen[name]}")
    check(all(a != b for a, b in zip(seen["dark"], seen["light"])), f"both look alike: {seen}")
    page.open(text=TURNED)
    for name in ("dark", "light"):
        page.browser.dark(name == "dark")
        page.browser.wait(f"{theme} === '{name}'")
        equal(page.browser.value(look), seen[name], f"the system's theme becomes {name}")


def sentences_are_chosen(page):
    page.open(text=TWO)
    first, second = (Reply(page, text) for text in (SENTENCE, TURNED))
    equal(page.browser.value("document.querySelector('#sentence-line').hidden"), False, "the list")
    near(page.numbers(".cells rect", "weight"), flat(first.words()), "the first sentence")
    choose(page, "sentence", "1")
    near(page.numbers(".cells rect", "weight"), flat(second.words()), "the second sentence")
    page.open(text=TWO, sentence=1, view="compare")
    page.browser.wait("document.querySelectorAll('.heat-map').length === 2")
    names = attributes(page, ".heat-map .names [data-col]")
    equal([n[0] for n in names], 2 * second.json["source"]["words"], "words of both maps")
    page.open(text=TWO, sentence=1, view="inside", step=2, layer=1, head=1)
    page.browser.wait("document.querySelector('.inside')?.dataset.shown !== undefined")
    pieces = [p if len(p) == 1 else p.replace("\u2581", "")
              for p in second.json["target"]["tokens"]]
    equal([n[0] for n in attributes(page, ".asking bdi")], pieces, "pieces of the second sentence")
    # Sentences keep their numbers if an earlier one has no attention.
    page.open(text=SENTENCE)
    page.browser.value(
        "(() => { const real = window.fetch; window.fetch = async (path, how) => {"
        " if (path === '/v1/explain') window.asked = JSON.parse(how.body).sentence;"
        " const reply = await real(path, how); if (path !== '/v1/translate/stream') return reply;"
        " const text = await reply.text(); const [begun, end] = text.split('event: done\\ndata: ');"
        " const json = JSON.parse(end); json.attention[0].attention = [];"
        " return new Response(`${begun}event: done\\ndata: ${JSON.stringify(json)}\\n\\n`);"
        " }; })()")
    page.browser.value(f"document.querySelector('#text').value = {json.dumps(TWO)}")
    ready_after(page, lambda: page.click("#ask [type=submit]"))
    choose(page, "sentence", "1")
    page.click("[data-view=inside]")
    page.browser.wait("window.asked !== undefined")
    equal(page.browser.value("window.asked"), 1, "the sentence that the explanation requests")


def typing_and_models(page):
    page.open(text=SENTENCE, mask="1")
    page.browser.value("(() => { const t = document.querySelector('#text'); t.focus();"
                       f" t.value = {json.dumps(TURNED)}; }})()")
    ready_after(page, lambda: page.browser.press("Enter"))
    equal(page.text("#translation"), Reply(page, TURNED).json["target"]["text"], "after Enter")
    equal(address(page), {"text": TURNED, "model": "en-de"},
          "the address: changes belong to the old sentence")
    # The later of two requests counts, even if its reply comes first, and even if the earlier
    # request gets a reply although it was aborted.
    page.browser.value(
        "(() => { const real = window.fetch; let first = true; window.fetch = async (path, how) => {"
        " const wait = first; first = false; const reply = await real(path, { ...how, signal: null });"
        " if (wait) await new Promise((done) => { window.release = done; }); return reply; }; })()")
    for text in ("A dog.", "The cat sleeps."):
        page.browser.value(f"document.querySelector('#text').value = {json.dumps(text)};"
                           "document.querySelector('#ask').requestSubmit()")
    last = Reply(page, "The cat sleeps.").json["target"]["text"]
    page.browser.wait("window.release !== undefined && document.querySelector('#translation')"
                      f".textContent === {json.dumps(last)}")
    page.browser.value("(window.release(), new Promise((done) => setTimeout(done, 60)))")
    equal(page.text("#translation"), last, "the translation of the last request")
    page.open()
    groups = page.browser.value("[...document.querySelectorAll('#model optgroup')].map((g) =>"
                                " [g.label.startsWith('Gallery'), g.children.length > 5])")
    equal(groups, [[True, True]], "the gallery in the list of models")
    ready_after(page, lambda: choose(page, "model", "de-en"))
    equal(page.browser.value("document.querySelector('#text').value"),
          "Ein kleiner Hund l\u00e4uft durch den Schnee.", "the example of the other language")
    asked = ask_service(page, "Ein kleiner Hund l\u00e4uft durch den Schnee.", source="de",
                        target="en")
    equal(page.text("#translation"), asked["target"]["text"], "the other model's translation")
    ready_after(page, lambda: page.browser.value(
        "document.querySelector('#text').value = ' '; document.querySelector('#ask')"
        ".requestSubmit()"))
    equal((page.text("#stage"), page.text("#message")), ("Type a sentence.", ""), "no text")


def the_translation_can_be_pointed_at(page):
    """Hovering a word shows its source words; hovering its row marks the word."""
    page.open(text=TWO)
    expected = Reply(page)
    words = [w[0] for w in attributes(page, "#translation bdi")]
    wanted = [word for reply in (expected, Reply(page, TURNED))
              for word in reply.json["target"]["words"][:-1]]
    equal(words, wanted, "words of the translation")
    row = expected.words()[2]
    best = sorted(zip(expected.json["source"]["words"], row), key=lambda pair: -pair[1])[:3]
    page.browser.value("document.querySelectorAll('#translation bdi')[2].dispatchEvent("
                       "new MouseEvent('mouseenter'))")
    equal(page.text("#read-out"), "Hund \u2192 " + ", ".join(f"{n} {w:.3f}" for n, w in best),
          "source words")
    equal([n[0] for n in attributes(page, "#translation .on")], ["Hund"], "the word that is marked")
    page.browser.value("document.querySelectorAll('#translation bdi')[2].dispatchEvent("
                       "new MouseEvent('mouseleave'))")
    equal(attributes(page, "#translation .on"), [], "marked without hovering")
    page.browser.value(f"document.querySelectorAll('#translation bdi')[{len(words) - 1}].click()")
    equal(address(page).get("sentence"), "1", "a click on a word of the second sentence")
    # The same in pieces, and with any selected kind of attention that the model has.
    page.open(text="Snowboarding dogs are ridiculously unbelievable.", view="player", step=3)
    page.browser.value("document.querySelector('.source bdi').dispatchEvent("
                       "new MouseEvent('mouseenter'))")
    page.click("[data-view=heads]")
    equal(attributes(page, "#translation .on"), [], "marked in a view without hovering")
    page.click("[data-view=player]")
    page.browser.value("document.querySelector('.source bdi').dispatchEvent("
                       "new MouseEvent('mouseenter'))")
    asked = ask_service(page, "Snowboarding dogs are ridiculously unbelievable.")["target"]
    equal([n[0] for n in attributes(page, "#translation .on")],
          [asked["words"][asked["word_of"][3]]], "the word of a piece")
    page.open(text=SENTENCE, model="additive", kind="encoder")
    page.browser.value("document.querySelectorAll('#translation bdi')[2].dispatchEvent("
                       "new MouseEvent('mouseenter'))")
    check(page.text("#read-out").startswith("Hund \u2192 dog"), page.text("#read-out"))


def back_goes_back(page):
    page.open(text=TURNED)
    page.browser.call("Page.resetNavigationHistory")  # the history is full at 50 entries
    for view in ("lines", "heads"):
        page.click(f"[data-view={view}]")
    choose(page, "gamma", "0.5", "input")  # makes no entry
    for view in ("lines", None):
        page.browser.value("history.back()")
        page.browser.wait(f"new URLSearchParams(location.hash.slice(1)).get('view') === "
                          f"{json.dumps(view)}")
    check(attributes(page, ".cells rect"), "the map is not drawn")
    # Keys without a function in this view are left to the browser, which scrolls.
    page.click("[data-view=positions]")
    for key in ("ArrowDown", "ArrowRight", "]"):
        page.browser.press(key)
    equal(address(page), {"text": TURNED, "view": "positions"}, "the address after keys")


def unknown_words_are_shown(page):
    text = "\u0642\u0627\u0644 Hello my friend \U0001f355 ."
    page.open(text=text)
    names = [n[0] for n in attributes(page, ".names [data-col]")]
    equal(names, [*text.split(), "</s>"], "words as they were typed")
    page.open(text=text, view="whatif", edit=text.replace("Hello", "Goodbye"))
    page.browser.wait("document.querySelector('.what-if').dataset.state === 'done'")
    names = [n[0] for n in attributes(page, ".mask [data-word]")]
    equal(names, [*text.replace("Hello", "Goodbye").split(), "</s>"], "words of what is changed")
    page.open(text="...")
    check("no words" in page.text("#stage"), f"nothing to translate: {page.text('#stage')!r}")


def a_missing_server_is_reported(page):
    with Server(page) as server:
        page.browser.open(f"{page.url}/#text=A+dog.")
        server.process.terminate()
        server.process.wait()
        page.browser.value("document.querySelector('#text').value = 'A cat.'")
        ready_after(page, lambda: page.click("#ask [type=submit]"))
        check("fovea serve" in page.text("#message"), f"missing server: {page.text('#message')!r}")
        check(attributes(page, ".stale .cells rect"), "the old result is not shown as stale")
        page.browser.logs = [line for line in page.browser.logs if "ERR_CONNECTION" not in line]
        page.browser.requests = [url for url in page.browser.requests
                                 if not url.startswith(page.url)]


def only_the_page_itself_runs(page):
    """Tests the security headers."""
    page.open(text=TURNED)
    policy, sniff = page.browser.value(
        "fetch('/').then((reply) => ['Content-Security-Policy', 'X-Content-Type-Options'].map("
        "(name) => reply.headers.get(name)))")
    check("default-src 'self'" in (policy or "") and "unsafe" not in policy, f"policy {policy}")
    equal(sniff, "nosniff", "whether types may be guessed")


def views_offer_what_they_have(page):
    tools = ("#kind", "#layer", "#head", "[data-unit]", "#gamma", "#hide", "#other", "#gold",
             "[data-save=svg]", "[data-save=csv]", "[data-save=pharaoh]")
    offered = {"map": "11111001111", "player": "01100000111", "lines": "11110100111",
               "heads": "10011000011", "beam": "01101000111", "whatif": "11111000110",
               "compare": "11111010111", "inside": "11100000000", "positions": "00000000000",
               "words": "00000000100", "training": "11111000000"}
    page.open(text=TURNED)
    for view, wanted in offered.items():
        page.click(f"[data-view={view}]")
        seen = page.browser.value(f"{json.dumps(tools)}.map((name) => Number(document"
                                  ".querySelector(name).getClientRects().length > 0)).join('')")
        equal(seen, wanted, f"what {view} offers")
        equal(page.browser.value("document.querySelector('#views [aria-selected=true]')"
                                 ".dataset.view"), view, "the view that is marked")


def words_have_their_direction(page):
    page.open(text="\u05e9\u05dc\u05d5\u05dd and \u0645\u0631\u062d\u0628\u0627", view="player")
    found = page.browser.value(
        "['#text', '#translation', '.source bdi', '.target bdi'].map((name) => {"
        " const node = document.querySelector(name); return [node.dir,"
        " getComputedStyle(node).unicodeBidi]; })")
    check(all(one[0] == "auto" for one in found), f"directions {found}")
    check(all(one[1] in ("isolate", "plaintext") for one in found[2:]), f"not apart: {found}")
    equal(page.browser.value("getComputedStyle(document.querySelector('#text')).direction"), "rtl",
          "the direction of the field")


def a_key_is_requested(page):
    with open(f"{page.folder}/keys", "w", encoding="utf-8") as file:
        file.write("open-sesame 1000\n")
    os.chmod(f"{page.folder}/keys", 0o600)
    with Server(page, "--api-keys", f"{page.folder}/keys", "--require-api-key"):
        page.browser.open(f"{page.url}/#text=A+dog.")
        check("Enter yours below" in page.text("#message"), f"without: {page.text('#message')!r}")
        equal(page.browser.value("document.querySelector('#key-line').hidden"), False, "its field")
        ready_after(page, lambda: choose(page, "key", "open-sesame"))
        for what in ("with the key", "after a reload, which keeps it"):
            equal((page.text("#message"), page.text("#translation")), ("", "Ein Hund."), what)
            page.browser.open(f"{page.url}/#text=A+dog.")
        ready_after(page, lambda: choose(page, "key", "wrong"))  # the reply is cached
        choose(page, "text", "A cat.")
        ready_after(page, lambda: page.click("#ask [type=submit]"))
        check("API key" in page.text("#message") and "yours below" not in page.text("#message"),
              f"with a wrong key: {page.text('#message')!r}")
        page.browser.logs = [line for line in page.browser.logs if "status of 4" not in line]
        page.browser.requests = [url for url in page.browser.requests
                                 if not url.startswith(page.url)]


def warned(page):
    hidden = page.browser.value("document.querySelector('#warnings').hidden")
    return "" if hidden else page.text("#warnings")


def unreadable_input_is_reported(page):
    page.open(text=SENTENCE, model="en-de")
    equal(warned(page), "", "warnings about English")
    page.open(text="我是一个学生", model="en-de")
    equal(warned(page), "6 of 6 characters are unknown to this model: 我 是 一 个 学."
          "The text looks like Chinese, and the model reads English. "
          "Switch to Simplified Chinese \u2192 English", "warnings about Chinese")
    page.open(text="I know that Νίκος is here today.", model="en-de")
    equal(warned(page), "The translation lacks 5 characters of the text: Ν ί κ ο ς.",
          "warnings about lost characters")
    german = "Das ist ein kleiner Hund, und er läuft durch den Schnee."
    page.open(text=german, model="en-de")
    equal(warned(page), "The text looks like German, and the model reads English. "
          "Switch to German → English", "warnings about German")
    ready_after(page, lambda: page.click("#warnings button"))
    equal(address(page).get("model"), "de-en", "the model after the button")
    equal(page.browser.value("document.querySelector('#text').value"), german, "the text after it")
    equal(warned(page), "", "warnings about German for de-en")
    check("dog" in page.text("#translation"), "the translation by the other model")


SHIPPED = [keys_choose, the_address_keeps_every_choice, themes_change, sentences_are_chosen,
           typing_and_models, views_offer_what_they_have, words_have_their_direction,
           only_the_page_itself_runs, a_key_is_requested, the_translation_can_be_pointed_at,
           back_goes_back, unknown_words_are_shown,
           unreadable_input_is_reported, a_missing_server_is_reported]
