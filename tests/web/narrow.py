"""Tests of the layout with little space: on a phone, with long sentences, with long words."""

import contextlib

from layout import attributes
from expected import SENTENCE, VIEWS, check, equal, near

PHONE = (390, 844)
LONG = " ".join(["the old man told the children a story about a brave dog ,"] * 8) + " ."
WORD = "Rindfleischetikettierungsueberwachungsaufgabenuebertragungsgesetz"


@contextlib.contextmanager
def screen(page, width, height):
    page.browser.resize(width, height)
    try:
        yield
    finally:
        page.browser.resize(1200, 800)


def box(page, selector):
    return page.browser.value(f"(() => {{ const b = document.querySelector('{selector}')"
                              ".getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom];"
                              " })()")


def boxes_apart(boxes, what):
    """Checks that no two of these elements overlap."""
    for i, a in enumerate(boxes):
        for b in boxes[i + 1:]:
            over = a[0] < b[2] - 1 and b[0] < a[2] - 1 and a[1] < b[3] - 1 and b[1] < a[3] - 1
            check(not over, f"{what}: {a} over {b}")


def nothing_is_wider_than_a_phone(page):
    logged = len(page.browser.logs)
    with screen(page, *PHONE):
        for view in VIEWS:
            page.open(text=SENTENCE, view=view)
            width = page.browser.value("document.documentElement.scrollWidth")
            equal(width, PHONE[0], f"the width of {view}")
            cut = page.browser.value(
                "[...document.querySelectorAll('header > *, #tools *, .steps *')].filter((n) =>"
                " n.getClientRects().length > 0 && n.getBoundingClientRect().right > innerWidth)"
                ".map((n) => n.outerHTML)")
            equal(cut, [], f"what {view} has beyond the edge")
        page.open(text=SENTENCE, view="player", model="local-p")
        left, _, right, _ = box(page, ".mechanism")
        check(right - left > 280, f"the chart is {right - left} wide")
        page.open(text=SENTENCE, view="heads")
        check(box(page, ".heads .name")[0] > 0 and box(page, ".heads button")[0] > 20,
              "heads begin left of the screen")
        page.open(text=SENTENCE, view="lines")
        check(box(page, ".lines")[2] < PHONE[0], f"lines end at {box(page, '.lines')[2]}")
        page.open(text=SENTENCE, view="whatif")
        left, _, right, _ = box(page, ".before .cells rect")
        check(right - left >= 14, f"cells of stacked maps are {right - left} wide")
        left, _, right, _ = box(page, ".before svg")  # cells are narrow only beside wide names
        check(right - left > 0.65 * PHONE[0], f"stacked maps are {right - left} wide")
        check(box(page, "header p")[3] > 0 and box(page, "#theme")[2] > PHONE[0] - 30,
              "the head of the page")
    equal(page.browser.logs[logged:], [], "what the browser logged")


def read_out_moves_nothing(page):
    """The length of the read-out does not move the drawing below it."""
    with screen(page, *PHONE):
        page.open(text=SENTENCE)
        top = box(page, "#stage")[1]
        for text in ("", "a", "pos 40, i 99, cosine = -0.0321 and so on", "Hund → dog = 0.598 Explain"):
            page.browser.value(f"document.querySelector('#read-out').textContent = '{text}'")
            near([box(page, "#stage")[1]], [top], f"the stage below {text!r}", within=0.01)


def the_stage_stays(page):
    """The stage has the same place in all views, and the line above it says what users can do."""
    page.open(text=SENTENCE)
    top = box(page, "#stage")[1]
    views = page.browser.value("[...document.querySelectorAll('#views button')]"
                               ".map((tab) => tab.dataset.view)")
    check(len(views) > 9, f"views {views}")
    for view in views:
        page.click(f"[data-view={view}]")
        near([box(page, "#stage")[1]], [top], f"the stage of {view}", within=0.6)
        told, hint = page.text("#read-out"), page.browser.value(
            "getComputedStyle(document.querySelector('#read-out'), '::before').content")
        # The bundled model has no training log.
        check(told or len(hint) > 9 or view == "training", f"{view} says nothing: {hint}")
    page.open(text="Two words.", view="positions")
    page.browser.wait("document.querySelector('.positions').dataset.shown")
    check("Point at a picture" in page.browser.value(
        "getComputedStyle(document.querySelector('#read-out'), '::before').content"), "no hint")


def a_view_waits_for_the_translation(page):
    page.open(text="...")  # nothing to translate, so that nothing is drawn
    check("no words" in page.text("#stage"), page.text("#stage"))
    page.browser.value("window.fetch = () => new Promise(() => {})")
    page.browser.value("document.querySelector('#text').value = 'A dog.'")
    page.browser.value("document.querySelector('#ask').requestSubmit()")
    page.browser.value("document.querySelector('[data-view=lines]').click()")
    equal(page.text("#stage"), "Translating \u2026", "the stage before the answer")


def a_long_search_is_a_low_tree(page):
    page.open(text=LONG, view="beam")
    page.browser.wait("document.querySelector('.search').dataset.state === 'done'")
    _, top, _, bottom = box(page, ".tree")
    check(bottom - top < 12 * 24, f"the tree is {bottom - top} high")
    check(box(page, ".hover-map")[3] <= top, "the attention of the hypothesis is not above the tree")
    labels = page.browser.value(
        "[...document.querySelectorAll('.tree g')].map((g) => { const b = g.getBBox();"
        " return [b.x, b.y, b.x + b.width, b.y + b.height]; })")
    check(len(labels) > 100, f"only {len(labels)} hypotheses")
    boxes_apart(labels, "labels of the tree")
    place = box(page, ".tree")
    page.browser.value("document.querySelector('.tree .lost').dispatchEvent("
                       "new MouseEvent('mouseenter'))")
    page.browser.wait("document.querySelector('.hover-map').dataset.id =="
                      " document.querySelector('.tree .lost').dataset.id")
    equal(box(page, ".tree"), place, "the place of the tree below the mouse")


def a_long_sentence_has_its_chart(page):
    page.open(text=LONG, view="player", step=40)
    check(box(page, ".mechanism")[3] - box(page, ".steps")[1] < 700, "the chart is not visible")
    for selector in (".source", ".target", ".player .scroll"):
        node = {".source": ".source bdi", ".target": ".target .now"}.get(selector, ".largest")
        if selector == ".source":
            node = page.browser.value(
                "`.source [data-col=\"${[...document.querySelectorAll('.source bdi')].reduce("
                "(a, b) => (Number(b.dataset.weight) > Number(a.dataset.weight) ? b : a))"
                ".dataset.col}\"]`")
        inner, outer = box(page, node), box(page, selector)
        check(outer[1] - 1 <= inner[1] and inner[3] <= outer[3] + 1
              and outer[0] - 1 <= inner[0], f"{node} is not in sight: {inner} in {outer}")
    xs = [name[1] for name in attributes(page, ".mechanism [data-col]", "x")]
    check(min(b - a for a, b in zip(xs, xs[1:])) > 13, f"names of the chart at {xs}")
    page.open(text=LONG, view="words")
    page.browser.wait("document.querySelector('.word-view')?.dataset.shown !== undefined")
    boxes_apart(page.browser.value(
        "[...document.querySelectorAll('.map-word text')].map((text) => {"
        " const b = text.getBBox(); return [b.x, b.y + 3, b.x + b.width, b.y + b.height - 3]; })"),
        "names of words")


def names_stay_while_a_map_scrolls(page):
    with screen(page, 900, 500):
        page.open(text=LONG)
        page.browser.value("document.querySelector('.frame').scrollTo(60, 200)")
        moved = "document.querySelector('.frame .across').style.transform"
        page.browser.wait(f"{moved} === 'translate(0px, 200px)'")
        frame, names = box(page, ".frame"), box(page, ".frame .across")
        near(names[1:2], frame[1:2], "the top of names of columns", within=1)
        near(box(page, ".frame .beside .paper")[:1], frame[:1], "the left of names of rows", 1)
        left, top = box(page, ".frame .corner")[2:]
        for x, y, wanted in ((left + 90, frame[1] + 5, "\u2190"),  # a column, a cell, a row
                             (left + 90, top + 90, "\u2192="),
                             (frame[0] + 5, top + 90, "\u2192")):
            page.browser.value(f"document.querySelector('.heat-map').dispatchEvent(new MouseEvent("
                               f"'mousemove', {{clientX: {x}, clientY: {y}}}))")
            text = page.text("#read-out")
            signs = "".join(c for c in text if c in "\u2190\u2192=")
            equal(signs, wanted, f"{x}, {y}: {text}")


def long_words_are_cut(page):
    text = f"The {WORD} sleeps."
    for view, selector in (("map", ".names [data-col]"), ("lines", ".lines text[data-col]")):
        page.open(text=text, view=view)
        found = page.browser.value(
            f"(() => {{ const n = document.querySelectorAll('{selector}')[1];"
            " return [n.firstChild.textContent, n.querySelector('title')?.textContent]; })()")
        check(found[0].endswith("\u2026") and WORD.startswith(found[0][:-1]), f"{view}: {found[0]}")
        equal(found[1], WORD, f"the title in {view}")
    left = box(page, ".lines")[0]
    check(box(page, ".lines text[data-col=\\'1\\']")[0] >= left, "the word begins outside the picture")


def positions_have_numbers(page):
    page.open(text=SENTENCE, view="positions")
    page.browser.wait("document.querySelector('.positions')?.dataset.shown !== undefined")
    left, top, right, bottom = box(page, ".picture")
    for side, count, low, high in (("across", 128, left, right), ("down", 64, top, bottom)):
        marks = page.browser.value(
            f"[...document.querySelector('.{side}').children].map((n) => {{ const b ="
            " n.getBoundingClientRect(); return [Number(n.textContent), (b.left + b.right) / 2,"
            " (b.top + b.bottom) / 2]; })")
        check(len(marks) > 4 and marks[0][0] == 0, f"numbers {side}: {marks}")
        near([mark[1 if side == "across" else 2] for mark in marks],
             [low + (mark[0] + 0.5) / count * (high - low) for mark in marks], side, within=2)


SHIPPED = [nothing_is_wider_than_a_phone, read_out_moves_nothing, the_stage_stays,
           a_view_waits_for_the_translation, a_long_search_is_a_low_tree,
           a_long_sentence_has_its_chart, names_stay_while_a_map_scrolls, long_words_are_cut,
           positions_have_numbers]
