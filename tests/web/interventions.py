"""Tests of interventions: masked words and heads, forced steps and prefixes."""

import urllib.parse

from layout import FULL_TEXT, TURNED, attributes, rgb
from expected import (SENTENCE, STEP, Reply, ask_service, check, equal, flat, near, picture,
                      saved_as)


def what_if(page, text=SENTENCE, **state):
    page.open(text=text, view="whatif", **state)
    page.browser.wait("document.querySelector('.what-if').dataset.state !== 'waiting'")
    equal(page.browser.value("document.querySelector('.what-if').dataset.state"), "done", "state")


def in_map(page, name):
    return page.numbers(f".{name} .cells rect", "weight")


def done_after(page, script, act=None):
    """Runs a script, then `act` if given, and waits until the view is redrawn."""
    page.browser.value("document.querySelector('.what-if').dataset.state = 'old'")
    page.browser.value(script)
    if act:
        act()
    page.browser.wait("document.querySelector('.what-if').dataset.state === 'done'")


def click_cell(page, name, row, col):
    columns = page.browser.value(f"document.querySelectorAll('.{name} .names [data-col]').length")
    done_after(page, f"""(() => {{
      const b = document.querySelectorAll('.{name} .cells rect')[{row} * {columns} + {col}]
        .getBoundingClientRect();
      document.querySelector('.{name} svg').dispatchEvent(new MouseEvent('click',
        {{ clientX: b.x + b.width / 2, clientY: b.y + b.height / 2, bubbles: true }})); }})()""")


def check_difference(page, before, now):
    """Checks the difference map. The name of a row starts with '+' if the row is only in the new
    translation, with '−' if it is only in the old one."""
    names = page.browser.value("[...document.querySelectorAll('.difference .names [data-row]')]"
                               f".map((node) => {FULL_TEXT})")
    old, new = (one.json["target"]["words"] for one in (before, now))
    columns = len(before.words()[0])
    shown = in_map(page, "difference")
    seen, at_old, at_new = set(), 0, 0  # a word may occur twice: rows keep the order of both
    for i, name in enumerate(names):
        was, _, became = name.partition(" \u21d2 ")
        less = more = [0.0] * columns
        if not name.startswith("+ "):
            equal(was.removeprefix("\u2212 "), old[at_old], "the old name of a row")
            less, at_old = before.words()[at_old], at_old + 1
        if not name.startswith("\u2212 "):
            equal((became or was).removeprefix("+ "), new[at_new], "the new name of a row")
            more, at_new = now.words()[at_new], at_new + 1
        near(shown[i * columns:(i + 1) * columns], [b - a for a, b in zip(less, more)],
             f"difference of {name}", within=2 * STEP)
        seen.add(name.split()[0] if " " in name else "same")
    equal((at_old, at_new), (len(old), len(new)), "rows of both translations")
    check(len(seen) > 1, f"nothing differs in {names}")


def masking_shows_the_difference(page):
    expected = Reply(page)
    what_if(page)
    near(in_map(page, "before"), flat(expected.words()), "before anything is changed")
    equal(len(attributes(page, ".heat-map")), 1, "maps before anything is changed")
    done_after(page, "document.querySelector('.mask [data-word=\"2\"]').click()")
    check("mask=2" in page.browser.value("location.hash"), "the address does not hold the mask")
    masked = Reply(page, mask_words=[2])
    check(all(row[2] == 0 for row in masked.words()), "the service attends to a masked word")
    near([sum(row) for row in masked.words()], [1] * len(masked.words()), "rows", within=0.02)
    near(in_map(page, "before"), flat(expected.words()), "the map before the change")
    near(in_map(page, "now"), flat(masked.words()), "with a masked word")
    said = page.browser.value("[...document.querySelectorAll('.said.now bdi')]"
                              ".map((node) => node.textContent).join(' ')")
    equal(said, masked.json["target"]["text"], "the translation without the word")
    check_difference(page, expected, masked)
    new = page.browser.value("[...document.querySelectorAll('.said.now ins')]"
                             ".map((node) => node.textContent)")
    old = [w for w in masked.json["target"]["words"] if w not in expected.json["target"]["words"]]
    check(set(old) <= set(new) and "Hund" not in said, f"marked as new: {new}, wanted {old}")
    done_after(page, "document.querySelector('.changes button').click()")
    near(in_map(page, "before"), flat(expected.words()), "after the change was undone")


def heads_are_muted(page):
    what_if(page, layer=1, head=2)
    done_after(page, "document.querySelector('[data-head=\"cross.1.2\"]').click()")
    muted = Reply(page, mask_heads=[{"kind": "cross", "layer": 1, "head": 2}])
    equal(set(in_map(page, "now")), {0}, "weights of the muted head")
    what_if(page, mute="cross.1.2,encoder.0.0", layer=1, head=1)
    muted = Reply(page, mask_heads=[{"kind": "cross", "layer": 1, "head": 2},
                                     {"kind": "encoder", "layer": 0, "head": 0}])
    near(in_map(page, "now"), flat(muted.words(layer=1, head=1)), "another head")
    equal(page.browser.value("document.querySelectorAll('.mute .masked').length"), 1,
          "muted heads of this kind")


def a_step_is_forced(page):
    expected = Reply(page)
    what_if(page)
    click_cell(page, "before", 2, 6)
    pieces = [i for i, word in enumerate(expected.rows) if word == 2]
    forced = Reply(page, prefix=expected.json["target"]["tokens"][:pieces[0]],
                   force_attention=[{"step": i, "word": 6} for i in pieces])
    near(in_map(page, "now"), flat(forced.words()), "with a forced step")
    forced.rows = list(range(len(forced.rows)))
    near(forced.words()[pieces[0]], [float(j == 6) for j in range(max(forced.cols) + 1)],
         "the row of that step", within=2 * STEP)
    check("prefix=" in page.browser.value("location.hash"), "the prefix is not in the address")
    click_cell(page, "before", 2, 6)
    check("force=" not in page.browser.value("location.hash"), "a second click does not undo it")


def one_head_is_forced(page):
    """Forces two steps in the selected layer and head; the second keeps the pieces before it."""
    expected = Reply(page)
    what_if(page, layer=1, head=2)
    wanted = []
    for row, col in ((1, 4), (3, 2)):
        click_cell(page, "now" if wanted else "before", row, col)
        wanted += [{"step": i, "word": col, "layer": 1, "head": 2}
                   for i, word in enumerate(expected.rows) if word == row]
        forced = Reply(page, force_attention=wanted,
                       prefix=expected.json["target"]["tokens"][:wanted[-1]["step"]])
        expected = forced
        near(in_map(page, "now"), flat(forced.words(layer=1, head=2)), f"row {row} forced")
    chips = [c[0] for c in attributes(page, ".changes button")]
    equal(chips[0], f"Step {wanted[0]['step'] + 1} attends to through \u00d7", "the label")
    click_cell(page, "now", 1, 4)
    state = urllib.parse.parse_qs(page.browser.value("location.hash").lstrip("#"))
    check("force" not in state, f"the later forced step remains: {state}")
    what_if(page, force="1.4.-1.-1,3.2.-1.-1", prefix="\u2581Ein")
    done_after(page, "document.querySelector('.changes .all').click()")
    check("force" not in page.browser.value("location.hash"), "not all changes are undone")
    near(in_map(page, "before"), flat(Reply(page).words()), "after all changes were undone")
    # In pieces, a cell of any piece forces its word.
    what_if(page, unit="pieces", text=TURNED)
    asked = Reply(page, TURNED)
    col = next(j for j, word in enumerate(asked.cols) if word < j)
    click_cell(page, "before", 2, col)
    state = urllib.parse.parse_qs(page.browser.value("location.hash").lstrip("#"))
    equal(state["force"], [f"2.{asked.cols[col]}.-1.-1"], "the forced word of a piece")


def differences_are_marked(page):
    """Masks two words: removed and new words, red and blue cells, negative numbers."""
    expected, now = Reply(page, TURNED), Reply(page, TURNED, mask_words=[1, 4])
    what_if(page, text=TURNED, mask="1,4")
    near(in_map(page, "now"), flat(now.words()), "with two masked words")
    gone, new = ([n[0] for n in attributes(page, f".said {tag}")] for tag in ("del", "ins"))
    before, after = (one.json["target"]["words"][:-1] for one in (expected, now))
    check(gone and set(before) - set(after) <= set(gone) <= set(before), f"removed {gone}")
    check(set(after) - set(before) <= set(new) <= set(after), f"new {new}")
    said = [line[0] for line in attributes(page, ".said")]
    equal(said, ["before " + " ".join(before), "now " + " ".join(after)], "both translations")
    shown = attributes(page, ".difference .cells rect", "data-weight", "fill", "width")
    for _, weight, fill, _ in shown:
        red, _, blue = rgb(fill)
        check(abs(weight) < 0.02 or (red > blue) == (weight > 0), f"{weight} is {fill}")
    # Cells of at least 28 pixels have numbers: those of a short sentence, with any font.
    what_if(page, text="A dog runs.", mask="1")
    shown = attributes(page, ".difference .cells rect", "data-weight", "width")
    check(shown[0][2] >= 28, "cells too small for numbers")
    texts = [t[0] for t in attributes(page, ".difference .cells text")]
    near([len(texts)], [sum(abs(one[1]) >= 0.01 for one in shown)], "numbers", within=1)
    check(any(text.startswith("\u2212") for text in texts), f"none is negative: {texts}")
    what_if(page, text=TURNED, mask="1,4", theme="dark")
    for _, weight, fill in attributes(page, ".difference .cells rect", "data-weight", "fill"):
        check(abs(weight) > 0.02 or max(rgb(fill)) < 110, f"dark: {weight} is {fill}")
    done_after(page, "document.querySelector('.changes button').click()")
    check("mask=4" in page.browser.value("location.hash"), "the other mask was removed too")


def equal_words_are_paired(page):
    page.open(text=SENTENCE)
    pairs = page.browser.value("import('/web/difference.js').then(({ paired }) => ["
                               "paired(['a', 'b'], ['b', 'c']), paired(['a', 'b'], ['a', 'x']),"
                               "paired(['a', 'b', 'c', 'd'], ['c', 'd', 'a'])])")
    equal(pairs, [[[0, None], [1, 0], [None, 1]], [[0, 0], [1, 1]],
                  [[0, None], [1, None], [2, 0], [3, 1], [None, 2]]], "pairs of words")


def a_word_is_edited(page):
    what_if(page)
    double = ("['click', 'click', 'dblclick'].forEach((kind, i) => document.querySelector("
              "'.mask [data-word=\"%d\"]')?.dispatchEvent(new MouseEvent(kind,"
              " { bubbles: true, detail: Math.min(2, i + 1) })))")
    page.browser.value(double % 7)
    equal(attributes(page, "input.edit"), [], "fields for </s>")
    page.browser.value(double % 2)
    page.browser.value("new Promise((done) => setTimeout(done, 300))")
    check("mask" not in page.browser.value("location.hash"), "a double click has masked a word")
    equal(page.browser.value("document.querySelector('input.edit').value"), "dog", "the field")
    done_after(page, "(() => { const field = document.querySelector('input.edit');"
               "field.value = 'cat'; field.dispatchEvent(new KeyboardEvent('keydown',"
               "{ key: 'Enter', bubbles: true })); })()")
    other = Reply(page, SENTENCE.replace("dog", "cat"))
    near(in_map(page, "now"), flat(other.words()), "with another word")
    names = page.browser.value("[...document.querySelectorAll('.difference .names [data-col]')]"
                               f".map((node) => {FULL_TEXT})")
    equal(names[2], "dog \u21d2 cat", "the column of the difference")


def hovering_links_all_maps(page):
    what_if(page, mask="2")
    row, col = 1, 1
    columns = page.browser.value("document.querySelectorAll('.now .names [data-col]').length")
    page.browser.move(*page.browser.value(
        f"(() => {{ const b = document.querySelectorAll('.now .cells rect')"
        f"[{row * columns + col}].getBoundingClientRect();"
        " return [b.x + b.width / 2, b.y + b.height / 2]; })()"))
    for name in ("before", "now", "difference"):
        equal(page.browser.value(f"document.querySelectorAll('.{name} .cross-hair rect').length"),
              2, f"lines of the cross-hair in {name}")
    expected, masked = Reply(page), Reply(page, mask_words=[2])
    before, now = (one.words()[row][col] for one in (expected, masked))
    was, became = (one.json["target"]["words"][row] for one in (expected, masked))
    name = was if was == became else f"{was} \u21d2 {became}"
    read = f"{name} \u2192 small: before {before:.3f}, now {now:.3f}, difference {now - before:.3f}"
    equal(page.text("#read-out"), read, "the read-out")
    # Without changes, the read-out has the weights of the sentence; redrawing updates it.
    done_after(page, "document.querySelector('.changes button').click()")
    equal(page.text("#read-out"), f"kleiner \u2192 small = {before:.3f}", "the read-out unchanged")


def keys_do_what_clicks_do(page):
    what_if(page, step=2)
    page.browser.value("document.querySelector('.mask [data-word=\"6\"]').focus()")
    done_after(page, "0", lambda: page.browser.press("f"))
    state = urllib.parse.parse_qs(page.browser.value("location.hash").lstrip("#"))
    equal(state["force"], ["2.6.-1.-1"], "the step forced by the key f")
    forced = Reply(page, prefix=state["prefix"][0].split(),
                   force_attention=[{"step": 2, "word": 6}])
    near(in_map(page, "now"), flat(forced.words()), "the step forced by the key f")
    page.browser.value("document.querySelector('.mask [data-word=\"1\"]').focus()")
    page.browser.press("e")
    equal(page.browser.value("document.activeElement.value"), "small", "the field after e")
    page.browser.value("document.activeElement.value = 'large'")
    page.browser.press("Escape")
    equal(page.browser.value("document.querySelectorAll('input.edit').length"), 0, "fields left")
    check("edit" not in page.browser.value("location.hash"), "Escape has kept the edit")
    equal(page.browser.value("document.activeElement.dataset.word"), "1", "the focus after Escape")
    page.browser.value("document.activeElement.blur()")
    page.browser.press("ArrowRight")  # the step after the chosen one
    marked = [n[0] for n in attributes(page, ".now .names .on")]
    equal(marked, [Reply(page, prefix=state["prefix"][0].split(), force_attention=[
        {"step": 2, "word": 6}]).json["target"]["words"][3]], "the row of the next step")
    page.browser.value("document.querySelector('.mask [data-word=\"1\"]').dispatchEvent("
                       "new MouseEvent('mouseenter'))")
    marked = [n[0] for n in attributes(page, ".now .names .on")]
    check("small" in marked, f"the word under the mouse is not among {marked}")


def the_chosen_step_is_forced(page):
    """Uses only keys: the step is selected after the view was drawn."""
    what_if(page)
    for _ in range(2):
        page.browser.press("ArrowRight")
    page.browser.value("document.querySelector('.mask [data-word=\"6\"]').focus()")
    done_after(page, "0", lambda: page.browser.press("f"))
    state = urllib.parse.parse_qs(page.browser.value("location.hash").lstrip("#"))
    equal(state["force"], ["2.6.-1.-1"], "the step forced by the key f")
    done_after(page, "document.querySelector('.mask [data-word=\"1\"]').focus()",
               lambda: page.browser.value("document.activeElement.click()"))
    equal(page.browser.value("document.activeElement.dataset.word"), "1", "the focus after a key")
    page.browser.press("e")
    done_after(page, "(() => { const field = document.activeElement; field.value = 'large';"
               " field.blur(); })()")
    check("edit=A+large" in page.browser.value("location.hash"),
          "an edit is discarded when its field loses the focus")


def changes_belong_to_their_sentence(page):
    """Every view shows that there are changes; another sentence has none."""
    page.open(text=f"{SENTENCE} {TURNED}", mask="2", view="map")
    page.browser.call("Page.resetNavigationHistory")  # the history is full at 50 entries
    check("Masked: dog" in page.text(".unchanged"), "the map does not mention the change")
    near(page.numbers(".cells rect", "weight"), flat(Reply(page).words()), "the unchanged map")
    page.browser.value("(() => { const list = document.querySelector('#sentence');"
                       " list.value = '1'; list.dispatchEvent(new Event('change')); })()")
    check("mask" not in page.browser.value("location.hash"), "a mask moves to another sentence")
    equal(attributes(page, ".unchanged"), [], "changes of another sentence")
    page.browser.value("history.back()")
    page.browser.wait("location.hash.includes('mask=2')"
                      " && document.querySelector('.unchanged') !== null")


def invalid_addresses_are_reported(page):
    page.open(text=SENTENCE, view="whatif", mask="77")
    page.browser.wait("document.querySelector('.what-if').dataset.state === 'failed'")
    check("there is no word 77" in page.text(".what-if"), page.text(".what-if"))
    page.browser.logs = [line for line in page.browser.logs if "400" not in line]


def hypotheses_can_be_followed(page):
    page.open(text=SENTENCE, view="beam")
    beam = ask_service(page, SENTENCE)["beam"]
    won, at = set(), next(n for n in beam if n.get("rank") == 0)
    nodes = {n["id"]: n for n in beam}
    while at:
        won.add(at["id"])
        at = nodes.get(at["parent"])
    # A hypothesis whose parent is on the best path shares its attention with that path.
    lost = next(n for n in beam if n["id"] not in won and not n["finished"] and n["step"] > 1
                and n["parent"] not in won)
    path, at = [], lost
    while at:
        path.insert(0, at["token"])
        at = nodes.get(at["parent"])
    page.browser.value(f"document.querySelector('.tree [data-id=\"{lost['id']}\"]')"
                       ".dispatchEvent(new MouseEvent('mouseenter'))")
    page.browser.wait(f"document.querySelector('.hover-map').dataset.id === '{lost['id']}'")
    forced = Reply(page, prefix=path)
    forced.cols = list(range(len(forced.cols)))
    forced.rows = list(range(len(forced.rows)))
    near(page.numbers(".hover-map .cells rect", "weight"), flat(forced.words()[:len(path)]),
         "the attention of the hypothesis")
    page.browser.value("document.querySelector('.search').dataset.state = 'old'")
    page.browser.value(f"document.querySelector('.tree [data-id=\"{lost['id']}\"]')"
                       ".dispatchEvent(new MouseEvent('click', { bubbles: true }))")
    page.browser.wait("document.querySelector('.search').dataset.state === 'done'")
    equal(forced.json["target"]["tokens"][:len(path)], path, "the forced prefix")
    check(page.text(".said.now").endswith(forced.json["target"]["text"]), page.text(".said.now"))
    got = page.browser.value("[...document.querySelectorAll('.tree [data-id]')].length")
    equal(got, 1 + len(forced.json["beam"]), "hypotheses after a forced prefix")
    equal(len(attributes(page, ".tree .forced")), len(path), "pieces that are forced")
    page.browser.value("document.querySelector('.search').dataset.state = 'old'")
    page.click(".changes button")
    page.browser.wait("document.querySelector('.search').dataset.state === 'done'")
    check("prefix" not in page.browser.value("location.hash"), "the prefix remains")
    # A finished hypothesis gives a prefix without its end symbol.
    ended = next(n for n in beam if n["finished"] and n["id"] not in won)
    page.browser.value(f"document.querySelector('.tree [data-id=\"{ended['id']}\"]')"
                       ".dispatchEvent(new MouseEvent('click', { bubbles: true }))")
    check("%3C%2Fs%3E" not in page.browser.value("location.hash"), "a prefix with </s>")


def two_sentences_side_by_side(page):
    page.open(text=SENTENCE, second="A big cat sleeps.", view="compare")
    page.browser.wait("document.querySelectorAll('.heat-map').length === 2")
    both = flat(Reply(page).words()) + flat(Reply(page, "A big cat sleeps.").words())
    near(page.numbers(".cells rect", "weight"), both, "weights of both sentences")
    page.browser.value("(() => { const field = document.querySelector('#second'); field.value ="
                       f" '{TURNED}'; field.dispatchEvent(new Event('change')); }})()")
    page.browser.wait("document.querySelectorAll('.heat-map').length === 2")
    turned = Reply(page, TURNED)
    near(page.numbers(".pair > div:nth-child(2) .cells rect", "weight"), flat(turned.words()),
         "the typed sentence")
    equal(page.text(".pair > div:nth-child(2) p"), turned.json["target"]["text"],
          "its translation")
    # Hovering marks equal words of both sentences and shows both weights.
    page.open(text=SENTENCE, second=SENTENCE.replace("small ", ""), view="compare")
    page.browser.wait("document.querySelectorAll('.heat-map').length === 2")
    page.browser.move(*page.browser.value(
        "(() => { const b = document.querySelectorAll('.heat-map')[1].querySelectorAll('.cells rect')"
        "[1 * 7 + 1].getBoundingClientRect(); return [b.x + 5, b.y + 5]; })()"))
    equal([n[0] for n in attributes(page, ".heat-map .names .on")], ["dog", "Hund"] * 2, "marked")
    left, right = Reply(page), Reply(page, SENTENCE.replace("small ", ""))
    equal(page.text("#read-out"), f"Hund \u2192 dog: first {left.words()[2][2]:.3f}, second "
          f"{right.words()[1][1]:.3f}", "both weights")
    drawing = saved_as(page, "svg").decode()
    equal((drawing.count("Hund<"), drawing.count("<svg")), (2, 3), "both maps in the saved file")


def mechanisms_can_be_changed(page):
    for name in ("global", "local-p", "hard-argmax", "forward", "window", "static"):
        page.open(text="a b c d", model=name, view="whatif", mask="1")
        page.browser.wait("document.querySelector('.what-if').dataset.state === 'done'")
        columns = page.browser.value("document.querySelectorAll('.now .names [data-col]').length")
        equal(set(in_map(page, "now")[1::columns]), {0}, f"{name}: weights of the masked word")


def pictures_of_changes(page):
    for theme in ("light", "dark"):
        page.browser.dark(theme == "dark")
        for name, state in (("mask", {"mask": "2"}), ("head", {"mute": "cross.1.2", "layer": 1}),
                            ("force", {"force": "2.6.-1.-1",
                                       "prefix": "\u2581Ein \u2581kleiner"})):
            what_if(page, **state)
            picture(page, f"whatif-{name}-{theme}")
        page.open(text=SENTENCE, second="A big cat sleeps on the sofa.", view="compare")
        page.browser.wait("document.querySelectorAll('.heat-map').length === 2")
        picture(page, f"sentences-{theme}")
    page.browser.dark(False)


SHIPPED = [hypotheses_can_be_followed, masking_shows_the_difference, heads_are_muted,
           a_step_is_forced, one_head_is_forced, differences_are_marked,
           equal_words_are_paired, a_word_is_edited, hovering_links_all_maps,
           keys_do_what_clicks_do, the_chosen_step_is_forced, changes_belong_to_their_sentence,
           invalid_addresses_are_reported,
           two_sentences_side_by_side, pictures_of_changes]
TRAINED = [mechanisms_can_be_changed]
