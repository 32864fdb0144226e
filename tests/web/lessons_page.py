"""Tests the lessons of the page in a browser: answers, verdicts, pictures, presenting, votes, printed sheets, and what is kept."""
import base64
import json

from browser import Keys, Page, soon

# Functions that the tests run in the page. They press and read what a learner presses and reads.
TOOLS = """
globalThis.inLesson = (number, step, more = {}) => tally.change({ part: 'lessons',
  lessons: { lesson: number, step, present: 0, votes: 0, sheet: '', ...more } });
globalThis.asked = (number) => tally.lessons.find((one) => one.number === number).events.filter((one) => one.event === 'prediction');
globalThis.lastQuestion = () => [...document.querySelectorAll('#lessons .question')].pop();
globalThis.reply = (question, i) => {
  const element = lastQuestion(), form = element.querySelector('form');
  if (!form) return element.querySelector(`.option[data-index="${i}"] button`).click();
  form.querySelector('input').value = question.options[i];
  form.requestSubmit();
};
globalThis.answerAll = (number) => {
  for (const question of asked(number)) { inLesson(number, question.step); reply(question, question.answer - 1); }
};
globalThis.verdict = () => {
  const element = lastQuestion().querySelector('.verdict'), box = element.getBoundingClientRect();
  return { words: element.textContent, said: element.querySelector('.said').textContent, focus: document.activeElement === element,
    inside: box.top >= 0 && box.bottom <= innerHeight + 0.5, hidden: element.hidden, top: box.top, bottom: box.bottom };
};
"""
EACH = "for (const { number, events } of tally.lessons) for (const question of asked(number))"


def size(driver, width, height):
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def fresh(driver, link="#part=lessons"):
    """Opens the page without kept answers."""
    page = Page(driver).open(link)
    page.js("localStorage.clear(); sessionStorage.clear()")
    page.open(link)
    page.js(TOOLS)
    return page


def recorded(page):
    return json.loads(page.js("return JSON.stringify(tally.lessons)"))


def questions_of(lesson):
    return [event for event in lesson["events"] if event["event"] == "prediction"]


def test_each_verdict_is_seen_differs_and_has_the_focus(driver, given):
    size(driver, 1280, 720)
    page = fresh(driver)
    right = page.js(f"""const all = [];
        {EACH} {{
          inLesson(number, question.step);
          const place = () => lastQuestion().getBoundingClientRect().top + scrollY, before = place();
          reply(question, question.answer - 1);
          all.push({{ number, id: question.id, moved: place() - before, ...verdict() }});
        }} return all""")
    page = fresh(driver)
    wrong = page.js(f"""const all = [];
        {EACH} {{
          inLesson(number, question.step);
          const others = question.options.map((_, i) => i).filter((i) => i !== question.answer - 1);
          reply(question, others[0]);
          const once = verdict();
          reply(question, others[1]);
          const mistakes = others.slice(0, 2).map((i) => question.mistakes[i]);
          all.push({{ number, id: question.id, once, mistakes, ...verdict() }});
        }} return all""")
    assert len(right) == len(wrong) > 120
    for good, bad in zip(right, wrong):
        where = f"lesson {good['number']}, question {good['id']}"
        assert good["said"].startswith("Right.") and "Answer: " in good["words"], f"{where}: {good}"
        assert bad["said"].startswith("No: the answer is "), f"{where}: {bad}"
        assert all(mistake in bad["words"] for mistake in bad["mistakes"]), f"{where}: {bad}"
        assert bad["once"]["words"] == f"No. {bad['mistakes'][0]} Try again.", f"{where}: {bad['once']}"
        for one in (good, bad["once"], bad):
            assert one["focus"] and one["inside"], f"{where}: {one}"
        assert abs(good["moved"]) < 1, f"{where}: the question moved by {good['moved']} pixels"
    print(f"  {len(right)} questions")


TEXTS = {"sentence": ["text"], "tensor": ["text"], "source": ["text"], "check": ["name"], "prediction": ["question", "why"]}


def test_lessons_show_what_was_recorded(driver, given):
    page, shown = fresh(driver), 0
    for lesson in recorded(page):
        if not questions_of(lesson):
            page.js("inLesson(arguments[0], 1)", lesson["number"])
            assert lesson["events"][-1]["detail"] in page.text("lessons") and not page.all("#lessons .lesson button:not([hidden]) .foot")
            continue
        page.js("answerAll(arguments[0]); inLesson(arguments[0], 99)", lesson["number"])
        words = page.js("return document.querySelector('#lessons .steps').textContent")
        for event in lesson["events"]:
            texts = [event[name] for name in TEXTS.get(event["event"], [])]
            if event["event"] == "table":
                texts = [cell for row in event["text"] for cell in row]
            for text in texts:
                shown += 1
                assert text in words, f"lesson {lesson['number']}: {text}"
        pictures = sum(event["event"] == "graph" for event in lesson["events"])
        assert page.js("return document.querySelectorAll('#lessons .steps img').length") == pictures, f"lesson {lesson['number']}"
        assert f"End of lesson {lesson['number']}" in words
    print(f"  {shown} texts")
    assert shown > 1000


def test_a_picture_that_shows_the_answer_is_folded_until_it_is_given(driver, given):
    page = fresh(driver)
    folded = page.js("""const wrong = []; let count = 0;
        for (const { number, events } of tally.lessons) for (const next of asked(number)) {
          const nextAt = (i) => events.slice(i).find((one) => one.event === 'prediction');
          const pictures = events.filter((event, i) => event.event === 'graph' && event.step + 1 >= next.step && nextAt(i) === next);
          count += pictures.length;
          inLesson(number, next.step);
          const all = (event) => [...document.querySelectorAll('#lessons .steps img')]
            .filter((image) => decodeURIComponent(image.src).includes(event.svg));
          const find = (event) => all(event).pop();
          for (const event of pictures) if (find(event).checkVisibility()) wrong.push(`${number}/${event.step} is seen`);
          reply(next, next.answer - 1);
          for (const event of pictures) {
            const where = lastQuestion().compareDocumentPosition(find(event));
            const isBelow = all(event).length === 1 && find(event).checkVisibility() && where & Node.DOCUMENT_POSITION_FOLLOWING;
            if (!isBelow) wrong.push(`${number}/${event.step} is not only below the question`);
          }
        }
        return { wrong, count }""")
    assert not folded["wrong"] and folded["count"] > 5, folded
    print(f"  {folded['count']} pictures")


def test_numbers_are_read_as_people_write_them(driver, given):
    page = fresh(driver, "#part=lessons&lesson=7&step=2")
    for text, words in (("", "Please type a number"), ("a third", "is not a number"), ("1e39", "does not fit into 32 bits")):
        page.js("lastQuestion().querySelector('input').value = arguments[0]; lastQuestion().querySelector('form').requestSubmit()", text)
        assert words in page.js("return lastQuestion().querySelector('.note-line').textContent"), text
        assert page.js("return verdict().hidden && document.activeElement === lastQuestion().querySelector('input')"), text
    for text in ("1/3", "0,333", "0.3333333333", "33,3 %"):
        page = fresh(driver, "#part=lessons&lesson=7&step=2")
        page.find(".typed input").send_keys(text, Keys.ENTER)
        assert page.js("return verdict().said").startswith("Right."), text
    page = fresh(driver, "#part=lessons&lesson=16")
    negative = page.js("""const question = asked(16).find((one) => one.options[one.answer - 1] === '-0.09');
        inLesson(16, question.step); return lastQuestion().querySelector('input').inputMode""")
    assert negative == "text"
    page.find(".card:last-child .typed input").send_keys("\u22120,09", Keys.ENTER)
    assert page.js("return verdict().said") == "Right."


def test_a_second_try_is_typed_without_a_click(driver, given):
    page = fresh(driver, "#part=lessons&lesson=6&step=3")
    page.find(".card:last-child .typed input").send_keys("77", Keys.ENTER)
    assert page.js("return verdict().words") == "No. Too high. Try again."
    page.press("3", Keys.ENTER)
    verdict = page.js("return verdict().words")
    assert verdict.startswith("Right.") and "First try: 77. Too high." in verdict


def test_answers_are_kept_by_a_reload_and_a_link_but_not_undone(driver, given):
    page = fresh(driver, "#part=lessons&lesson=6&step=4")
    page.js("inLesson(6, 3); reply(asked(6)[0], 1)")
    page.js("inLesson(6, 4); reply(asked(6)[1], asked(6)[1].answer - 1)")
    page.find("#undo").click()
    page.open("#part=lessons&lesson=6&step=4")
    page.js(TOOLS)
    words = page.js("return [...document.querySelectorAll('.question')].map((one) => one.querySelector('.said').textContent)")
    assert words[0].startswith("No. ") and words[1] == "Right.", words
    page.open("#part=lessons")
    row = page.js("return document.querySelectorAll('.lesson-list li')[5].textContent")
    assert "1 of 4 answered" in row and "Go on" in row, row


def test_without_storage_lessons_still_work(driver, given):
    code = {"source": "Object.defineProperty(globalThis, 'localStorage', { get() { throw new Error('none'); } })"}
    handle = driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", code)
    try:
        page = Page(driver).open("#part=lessons&lesson=6&step=3")
        page.js(TOOLS)
        page.js("reply(asked(6)[0], 0)")
        assert page.js("return verdict().said") == "Right."
    finally:
        driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", handle)


def test_hints_and_the_answer_on_request(driver, given):
    page = fresh(driver, "#part=lessons&lesson=6&step=4")
    question = questions_of(recorded(page)[5])[1]
    hint, show = page.all(".card:last-child .helps button")[2:4]
    hint.click()
    assert question["hints"][0] in page.text("lessons") and question["hints"][1] not in page.text("lessons")
    hint.click()
    assert question["hints"][1] in page.text("lessons") and not hint.is_displayed()
    assert show.text == "I do not know: show me"
    show.click()
    assert page.js("return verdict().said").startswith("The answer is ") and page.js("return verdict().focus")


def test_a_lesson_ends_with_a_score_and_the_next_lesson(driver, given):
    page = fresh(driver)
    page.js("answerAll(6); inLesson(6, 99)")
    assert "You answered 4 of 4 questions at the first try." in page.text("lessons")
    page.find(".onward").click()
    soon("lesson 7", lambda: page.js("return tally.now().lessons.lesson") == 7)
    soon("its title", lambda: page.js("return document.activeElement.textContent").startswith("Lesson 7"))
    assert page.js("return scrollY") == 0
    page.find(".back-to-list").click()
    soon("the list", lambda: page.js("return tally.now().lessons.lesson") == 0)
    assert "all 4 answered" in page.js("return document.querySelectorAll('.lesson-list li')[5].textContent")


def test_the_live_picture_fits_the_lesson_and_shows_no_answer(driver, given):
    page = fresh(driver, "#part=lessons&lesson=6")
    soon("the scene", lambda: page.js("return String(tally.now().toy.cuts)") == "2,2,2")
    assert page.js("return [tally.now().toy.at, document.getElementById('toy').hidden]") == [0, False]
    page.js("inLesson(6, 3); reply(asked(6)[0], 0)")
    soon("the film", lambda: page.js("return tally.now().toy.at") == 3)
    page.js("inLesson(12, 1)")
    assert page.js("return document.getElementById('toy').hidden")


def test_a_link_begins_at_its_step(driver, given):
    size(driver, 1280, 720)
    page = fresh(driver, "#part=lessons&lesson=12&step=6")
    box = page.js("const box = document.querySelector('.card:last-of-type').getBoundingClientRect(); return [box.top, innerHeight]")
    assert 0 <= box[0] < box[1] / 2, box


# ---- in front of a class ----

def test_presenting_shows_what_a_question_is_about(driver, given):
    size(driver, 1280, 720)
    page = fresh(driver)
    missing = page.js("""const missing = []; let count = 0;
        for (const { number, events } of tally.lessons) for (const question of asked(number)) {
          inLesson(number, question.step, { present: 1 });
          const context = document.querySelector('#lessons .context'), words = context.innerText;
          for (const event of events.filter((one) => one.step === question.step - 1)) {
            const where = `${number}/${question.step}: ${event.event}`;
            if (['table', 'source', 'tensor', 'graph', 'plot'].includes(event.event)) ++count;
            if (event.event === 'table' && ![...context.querySelectorAll('table')].some((one) => one.checkVisibility() &&
              event.text.flat().every((cell) => one.textContent.includes(cell)))) missing.push(where);
            if (event.event === 'source' && !words.includes(event.text.split('\\n')[0].trim())) missing.push(where);
            if (event.event === 'tensor' && !words.includes(event.name)) missing.push(where);
            const drawn = { graph: 'figure.lesson-picture, details.folding', plot: '.lesson-plot' }[event.event];
            if (drawn && !context.querySelector(drawn)?.checkVisibility()) missing.push(where);
            if (event.event === 'sentence' && words.includes(event.text)) missing.push(`${where} is seen`);
          }
          const [left, right] = [context, lastQuestion()].map((one) => one.getBoundingClientRect());
          const isBeside = left.right <= right.left && left.top <= innerHeight;
          if (!context.hidden && !isBeside) missing.push(`${number}/${question.step}: not next to it`);
        }
        return { missing, count }""")
    assert not missing["missing"] and missing["count"] > 100, missing
    size(driver, 900, 720)
    page.js("inLesson(6, 3, { present: 1 })")
    boxes = page.js("return ['.context', '.steps'].map((one) => document.querySelector(`#lessons ${one}`).getBoundingClientRect().top)")
    assert boxes[0] < boxes[1], boxes


def presented(driver, lesson, step, more=""):
    return fresh(driver, f"#part=lessons&lesson={lesson}&step={step}&present=1{more}")


def test_a_clicker_reveals_an_answer_only_when_it_is_pressed_twice(driver, given):
    size(driver, 1280, 720)
    page = presented(driver, 6, 3)
    page.press(Keys.PAGE_DOWN)
    assert "Press again to show the answer" in page.text("lessons") and page.js("return verdict().hidden")
    page.press("h")
    page.press(Keys.PAGE_DOWN)
    assert page.js("return verdict().hidden"), "another key disarms the clicker"
    page.press(Keys.PAGE_DOWN)
    assert page.js("return verdict().said") == "The answer is 3."
    for _ in range(9):
        if page.js("return tally.now().lessons.step") == 4:
            break
        page.press(Keys.PAGE_DOWN)
    assert page.js("return tally.now().lessons.step") == 4
    page.press(Keys.ARROW_LEFT)
    assert page.js("return tally.now().lessons.step") == 3


def test_presenting_keys(driver, given):
    page = presented(driver, 6, 4)
    assert page.js("return document.querySelector('.corner').textContent") == "L 6 4"
    assert not page.find("nav").is_displayed()
    question = questions_of(recorded(page)[5])[1]
    page.press("1")
    assert question["mistakes"][0] in page.js("return verdict().words")
    page.press("h")
    assert question["hints"][0] in page.text("lessons")
    page.press(str(question["answer"]))
    assert page.js("return verdict().said") == "Right."
    page.press("c")
    assert page.js("return document.querySelector('.results details.checks').open")
    page.press("b")
    assert page.find(".black").is_displayed()
    page.press(Keys.PAGE_DOWN)
    assert not page.find(".black").is_displayed() and page.js("return tally.now().lessons.step") == 4
    page.press("?")
    assert page.find("dialog.settings").is_displayed()
    page.press(Keys.ESCAPE)
    assert not page.find("dialog.settings").is_displayed() and page.js("return tally.now().lessons.present") == 1
    page.press(Keys.ESCAPE)
    assert page.js("return tally.now().lessons.present") == 0 and page.find("nav").is_displayed()
    assert page.js("return document.activeElement.textContent") == "Present"
    said = page.js("return [...document.querySelectorAll('.question .said')].map((one) => one.textContent).join('')")
    assert not said, "a class has answers of its own"


def test_presenting_results_are_next_to_the_verdict(driver, given):
    size(driver, 1280, 720)
    page = presented(driver, 7, 3)
    page.press("6", Keys.ENTER)
    soon("the picture", lambda: page.js("return document.querySelector('.results img')?.naturalWidth > 0"))
    verdict, results = (page.js("const { left, right, top } = document.querySelector(arguments[0]).getBoundingClientRect(); return [left, right, top]", one)
                        for one in (".verdict", ".results"))
    assert results[1] <= verdict[0] and results[2] < 720 and 0 < verdict[2] < 720, (verdict, results)


def test_presenting_the_live_picture(driver, given):
    for lesson, part in ((6, "toy"), (28, "chain"), (5, "noise")):
        for width, height in ((1280, 720), (1920, 1080)):
            size(driver, width, height)
            page = presented(driver, lesson, 3)
            page.press("l")
            assert page.find(f"#{part}").is_displayed() and not page.find(".talk").is_displayed() and not page.find("nav").is_displayed()
            assert page.js("const { scrollWidth, scrollHeight } = document.documentElement; return [scrollWidth <= innerWidth, scrollHeight <= innerHeight]") == [True] * 2
            page.press(Keys.PAGE_DOWN)
            assert page.find(".talk").is_displayed() and not page.find(f"#{part}").is_displayed() and page.js("return tally.now().lessons.step") == 3
    page = presented(driver, 6, 4)
    next(one for one in page.all(".foot button") if one.text == "Live picture").click()
    page.press("3")
    assert not page.js("return document.querySelector('.steps .said').textContent"), "a digit answers no hidden question"
    page.js("tally.change({ toy: { at: 0 } })")
    page.find("#toy .key").send_keys(Keys.SPACE)
    soon("the last micro-batch", lambda: page.js("return tally.now().toy.at") == 3)
    assert page.find("#toy").is_displayed(), "Space presses Play"
    page.press("l", "l")
    page.find("#toy .choice button").click()
    page.press("l", "l")
    assert page.js("return tally.now().toy.cuts") == [6], "the picture is as it was left"
    page.find(".gap").send_keys("b", Keys.SPACE)
    assert not page.find(".black").is_displayed() and page.js("return tally.now().toy.cuts") == [6], "the black screen ends and nothing is cut"
    page.find(".gap").send_keys(Keys.ARROW_RIGHT)
    assert page.find("#toy").is_displayed(), "an arrow moves along the gaps"
    page.press(Keys.ESCAPE)
    assert page.js("return tally.now().lessons.present") == 1
    assert not presented(driver, 9, 2).find(".foot").text.count("Live picture"), "lesson 9 has no live picture"


def test_presenting_a_number_needs_no_click_into_its_field(driver, given):
    page = presented(driver, 6, 3)
    page.press("6", Keys.ENTER)
    assert page.js("return verdict().said").startswith("No. ")
    page.press("3", Keys.ENTER)
    assert page.js("return verdict().said") == "Right."


def test_presenting_a_picture_is_one_screen(driver, given):
    for width, height in ((1280, 800), (1920, 1080)):
        size(driver, width, height)
        page = presented(driver, 6, 2)
        page.press("g")
        soon("the picture", lambda page=page: page.js("return document.querySelector('dialog img').naturalWidth > 0"))
        box = page.js("const box = document.querySelector('dialog img').getBoundingClientRect(); return [box.top, box.bottom, box.height]")
        assert box[0] >= 0 and box[1] <= height and box[2] > 0.8 * height, (width, box)
        page.press("g")
        assert not page.find("dialog.enlarged").is_displayed()


def test_presenting_ends_with_the_next_lesson(driver, given):
    page = presented(driver, 6, 7)
    page.js("reply(asked(6)[3], asked(6)[3].answer - 1)")
    assert "Next: 7. divide" in page.text("lessons")
    page.press(Keys.ARROW_RIGHT)
    assert page.js("return tally.now().lessons.lesson") == 6 and "Press again for lesson 7" in page.text("lessons")
    page.press(Keys.ARROW_RIGHT)
    assert page.js("return [tally.now().lessons.lesson, tally.now().lessons.step, tally.now().lessons.present]") == [7, 1, 1]


def test_a_long_step_is_scrolled_before_the_next(driver, given):
    size(driver, 1024, 300)
    page = presented(driver, 5, 1)
    for _ in range(30):
        step, bottom, height = page.js("""return [tally.now().lessons.step,
            document.querySelector('.lesson').getBoundingClientRect().bottom, innerHeight]""")
        at_end = bottom <= height + 8
        assert step == 1
        if at_end:
            break
        was = page.js("return scrollY")
        page.press(Keys.PAGE_DOWN)
        assert page.js("return scrollY") > was
    assert at_end
    page.press(Keys.PAGE_DOWN)
    assert page.js("return [tally.now().lessons.step, scrollY]") == [2, 0]


# ---- votes ----

def test_votes_are_counted_in_two_rounds_and_hidden_until_shown(driver, given):
    page = presented(driver, 6, 4, "&votes=1")
    for i in (0, 1, 1, 1):
        page.all(".steps .option button")[i].click()
    page.js("""document.querySelectorAll('.steps .option button')[1]
        .dispatchEvent(new MouseEvent('click', { bubbles: true, shiftKey: true }))""")
    assert "3 votes" in page.text("lessons") and not page.all(".bar-of-votes")
    page.press("v")
    bars = page.js("return [...document.querySelectorAll('.bar-of-votes')].map((one) => one.textContent)")
    assert bars == ["1 vote", "2 votes", "0 votes", "0 votes"], bars
    page.find(".helps").find_elements("css selector", "button")[1].click()  # talk, then vote again
    assert not page.all(".bar-of-votes")
    page.press("4", "4")
    page.press("v")
    bars = page.js("return [...document.querySelectorAll('.option')][3].innerText")
    assert "before: 0" in bars and "after: 2" in bars, bars
    assert page.js("return verdict().hidden"), "votes answer nothing"
    page.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    question = questions_of(recorded(page)[5])[1]
    words = page.js("return verdict().words")
    assert question["why"] in words and f"(2 votes): {question['mistakes'][1]}" in words, words


def test_a_class_votes_for_the_known_mistakes_of_a_number(driver, given):
    page = presented(driver, 6, 3, "&votes=1")
    options = page.js("return [...document.querySelectorAll('.steps .option button > span:nth-child(2)')].map((one) => one.textContent)")
    assert options == ["1/3 (0.3333)", "1", "2", "3", "6"], options
    page.press("4", "4", "v")
    assert "2 votes" in page.js("return document.querySelectorAll('.option')[3].innerText")


# ---- printed sheets ----

def test_printed_questions_contain_no_answers(driver, given):
    page = fresh(driver)
    for lesson in recorded(page):
        asked = questions_of(lesson)
        if not asked:
            continue
        page.js("inLesson(arguments[0], 1, { sheet: 'questions' })", lesson["number"])
        words = page.js("return document.querySelector('.paper').textContent")
        for event in asked:
            assert event["question"] in words and (event["kind"] == "number" or all(option in words for option in event["options"]))
            for text in (event["why"], *filter(None, event["mistakes"])):
                assert text not in words, f"lesson {lesson['number']}: {text}"
        later = [event["text"] for event in lesson["events"] if event.get("step", 0) > asked[0]["step"] and event["event"] == "sentence"]
        assert not any(text in words for text in later), f"lesson {lesson['number']}"
        assert not page.all(".paper img") and "Name:" in words and "Date:" in words
        page.js("inLesson(arguments[0], 1, { sheet: 'answers' })", lesson["number"])
        words = page.js("return document.querySelector('.paper').textContent")
        for event in asked:
            assert all(text in words for text in (event["question"], event["why"], *event["mistakes"])), f"lesson {lesson['number']}"


def test_a_sheet_of_questions_flows_over_few_pages(driver, given):
    page = fresh(driver, "#part=lessons&lesson=7&sheet=questions")
    assert page.find(".paper").is_displayed() and not page.find(".lesson").is_displayed()
    printed = base64.b64decode(driver.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert 1 <= printed.count(b"/Type /Page\n") <= 2, printed.count(b"/Type /Page\n")
    page.find(".sheet button").click()
    assert page.find(".lesson").is_displayed()


# ---- access ----

def test_little_is_announced_at_each_step(driver, given):
    page = fresh(driver)
    most = page.js("""globalThis.said = 0;
        const isLive = (one) => one.parentElement?.closest('[role=status], [role=alert], [aria-live]');
        const count = (one) => { if (isLive(one)) said += one.textContent.length; };
        new MutationObserver((all) => all.forEach((change) => change.addedNodes.forEach(count)))
          .observe(document.getElementById('lessons'), { childList: true, subtree: true, characterData: true });
        return new Promise(async (done) => {
          let most = 0;
          for (const question of asked(28)) {
            for (const act of [() => inLesson(28, question.step), () => reply(question, question.answer - 1)]) {
              said = 0; act(); await new Promise((next) => setTimeout(next, 20)); most = Math.max(most, said);
            }
          }
          done(most);
        })""")
    assert most <= 200, most


def test_a_box_is_in_the_tab_order_only_if_it_scrolls(driver, given):
    for width, some in ((1900, False), (340, True)):
        size(driver, width, 900)
        page = fresh(driver, "#part=lessons&lesson=12&step=2")
        soon("the boxes", lambda page=page, some=some: bool(page.all("#lessons .sideways[tabindex]")) == some)
        wrong = page.js("""return [...document.querySelectorAll('#lessons .sideways')]
            .filter((one) => (one.scrollWidth > one.clientWidth + 1) !== (one.tabIndex === 0)).length""")
        assert not wrong and page.js("return document.documentElement.scrollWidth") <= width


def test_lessons_fit_narrow_windows(driver, given):
    for width in (320, 360, 768):
        size(driver, width, 740)
        page = fresh(driver)
        wide = page.js("""const wide = [];
            for (const { number } of tally.lessons) {
              inLesson(number, 99);
              if (document.documentElement.scrollWidth > innerWidth) wide.push(number);
              inLesson(number, 2, { present: 1 });
              if (document.documentElement.scrollWidth > innerWidth) wide.push(-number);
              inLesson(number, 1, { sheet: 'answers' });
              if (document.documentElement.scrollWidth > innerWidth) wide.push(`sheet ${number}`);
            }
            return wide""")
        assert not wide, f"{width}: lessons {wide} are too wide"


def test_each_series_of_a_plot_has_its_own_mark(driver, given):
    size(driver, 1280, 720)
    page = fresh(driver, "#part=lessons&lesson=5&step=2")
    looks = page.js("""return [...document.querySelectorAll('.lesson-legend .mark')].map((one) =>
        [one.tagName, one.getAttribute('points')?.split(' ').length, getComputedStyle(one).fill].join())""")
    assert len(looks) == 3 and len(set(looks)) == 3, looks
    ticks = page.js("return [...document.querySelectorAll('.lesson-plot text')].map((one) => one.textContent)")
    assert ticks.count("0") == 2 and all(len(tick) <= 4 for tick in ticks), ticks
