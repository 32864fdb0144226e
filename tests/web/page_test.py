"""Tests the page in a browser, from a file and without a network: bits, numbers, controls, sizes, colours and errors.

Usage: page_test.py PAGE_ENGINE LESSONS_FOLDER [--seed S] [--shots FOLDER]
       page_test.py PAGE_ENGINE LESSONS_FOLDER --keep   (redraws tests/web/golden; check each picture before you commit it)
"""

import argparse
import base64
import gzip
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time

import golden

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "classroom.html"
PARTS = ["toy", "lessons", "chain", "noise"]
SIZES = [(360, 740), (1024, 768), (1920, 1080)]
MOST_BYTES = 500_000
sys.path[:0] = [str(ROOT / "web"), str(ROOT / "tests/lesson")]

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
except ImportError:
    if sys.executable != "/usr/bin/python3" and os.path.exists("/usr/bin/python3"):  # Debian's Python has Debian's packages
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
    print("skipped: no selenium (python3-selenium)")
    sys.exit(77)


def browser():
    options = Options()
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1024,900", "--host-resolver-rules=MAP * ~NOTFOUND"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)


def soon(what, holds):
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline, f"waited for {what}"
        time.sleep(0.01)


class Page:
    def __init__(self, driver, path=PAGE):
        self.driver = driver
        self.url = f"file://{path}"

    def open(self, link=""):
        self.driver.get("about:blank")
        self.driver.get(self.url + link)
        soon("the page", lambda: self.js("return document.documentElement.dataset.ready") == "yes" or self.text("told") or self.text("trouble"))
        return self

    def js(self, code, *arguments):
        return self.driver.execute_script(code, *arguments)

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, name):
        return self.find(f"#{name}").text

    def press(self, *keys):
        for key in keys:  # sent to the current focus
            ActionChains(self.driver).send_keys(key).perform()

    def put(self, selector, text):
        field = self.find(selector)
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(text or Keys.DELETE)
        field.send_keys(Keys.TAB)


def bits(x):
    return struct.unpack("<I", struct.pack("<f", x))[0]


def unpacked(name):
    packed = PAGE.read_text(encoding="utf-8").split(f'id="{name}">', 1)[1].split("<", 1)[0]
    return gzip.decompress(base64.b64decode(packed))


def recorded():
    return json.loads(unpacked("recorded"))


# ---- the file ----

def test_the_page_was_made_from_these_sources(_, given):
    made_from = PAGE.read_text(encoding="utf-8").split('name="tally-sources" content="', 1)[1].split('"', 1)[0]
    now = subprocess.run([sys.executable, ROOT / "web/build.py", "--hash"], capture_output=True, text=True, check=True).stdout.strip()
    assert made_from == now, "the sources have changed since: ./learn web --build"
    import build  # noqa: PLC0415
    assert build.hash_of(build.engine_sources()).encode() in unpacked("engine"), "its engine was compiled from other sources"


def test_the_page_is_small(_, given):
    size = PAGE.stat().st_size
    print(f"  {size} bytes")
    assert size < MOST_BYTES


def test_recorded_events_are_those_of_the_lessons(_, given):
    import build  # noqa: PLC0415
    from printed_test import printed  # noqa: PLC0415  removes times and results that depend on the processor's BLAS
    kept = {one["number"]: one["events"] for one in recorded()}
    once, again = (build.lessons(given.lessons) for _ in range(2))
    assert [one["number"] for one in once] == sorted(kept)
    compared = 0
    for one, other in zip(once, again):
        here = kept[one["number"]]
        if one["events"][-1]["outcome"] == "skip" != here[-1]["outcome"]:
            continue  # recorded with MPI, which this machine lacks
        assert len(here) == len(one["events"]), f"lesson {one['number']}: {len(here)} events, now {len(one['events'])}"
        for was, now, then in zip(here, one["events"], other["events"]):
            if now == then:  # events that differ between two runs contain times
                compared += 1
                assert printed(was) == printed(now), f"lesson {one['number']}: {json.dumps(was)[:300]} is now {json.dumps(now)[:300]}"
    print(f"  {compared} events are the same")
    assert compared > 500


def test_a_damaged_page_shows_a_message(driver, given):
    text = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "page.html"
        copy.write_text(text[: len(text) - 3000], encoding="utf-8")
        driver.get(f"file://{copy}")
        assert "incomplete" in driver.find_element(By.ID, "trouble").text
        for name, words in (("engine", "checksum of the engine"), ("recorded", "checksum of the recorded lessons")):
            at = text.index(f'id="{name}">') + 20_000
            other = "A" if text[at] != "A" else "B"
            copy.write_text(text[:at] + other + text[at + 1:], encoding="utf-8")
            page = Page(driver, copy).open()
            soon(words, lambda page=page, words=words: words in page.text("told"))


# ---- the numbers ----

def test_the_engine_has_native_bits(driver, given):
    page, draw, asked, lines = Page(driver).open(), random.Random(given.seed), [], []

    def number():
        kind = draw.random()
        return 0.0 if kind < 0.05 else struct.unpack("<f", struct.pack("<f", draw.gauss(0, 10 ** draw.uniform(-3, 3))))[0]
    for _ in range(200):
        x, w = [number() for _ in range(18)], [number() for _ in range(3)]
        cuts = []
        while sum(cuts) < 6:
            cuts.append(draw.randint(1, 6 - sum(cuts)))
        divide = draw.randrange(3)
        asked.append(f"ask('toy', Float32Array.from({x}), 18, Float32Array.from({w}), Int32Array.from({cuts}), {len(cuts)}, {divide})")
        lines.append(f"toy 18 {' '.join(str(bits(v)) for v in x)} 3 {' '.join(str(bits(v)) for v in w)} "
                     f"{len(cuts)} {' '.join(map(str, cuts))} {divide}")
    for _ in range(10):
        keep = [draw.randrange(2) for _ in range(draw.randint(2, 24))]
        asked.append(f"ask('chain', Int32Array.from({keep}), {len(keep)})")
        lines.append(f"chain {len(keep)} {' '.join(map(str, keep))}")
        seed, size = draw.randrange(1000), draw.randint(1, 40)
        asked.append(f"ask('noise', {seed}, {size}, 20)")
        lines.append(f"noise {seed} {size} 20")
    native = subprocess.run([given.engine], input="\n".join(lines), capture_output=True, text=True, check=True).stdout.splitlines()
    for request, line, expected in zip(asked, lines, native, strict=True):
        answer = page.js(f"return {request}")
        assert answer == json.loads(expected), f"seed {given.seed}: {line}: {json.dumps(answer)[:300]} natively is {expected[:300]}"
    assert "the same as the C++ program's" in page.text("badge")


def test_every_short_chain_has_an_answer(_, given):
    cuts = [[1, *(number >> i & 1 for i in range(layers - 1))] for layers in range(2, 9) for number in range(1 << (layers - 1))]
    asked = "\n".join(f"chain {len(cut)} {' '.join(map(str, cut))}" for cut in cuts)
    answers = subprocess.run([given.engine], input=asked, capture_output=True, text=True, check=True).stdout.splitlines()
    for cut, answer in zip(cuts, answers, strict=True):
        assert answer.startswith("{"), f"{cut}: {answer}"
        told = json.loads(answer)
        assert told["same"] and told["best_peak"] <= told["peak"] and told["best_again"] <= told["again"], f"{cut}: {told}"


def test_the_three_lines_of_the_toy(driver, given):
    page = Page(driver).open()
    assert "[-0.3536 0.0207 -0.6125]" in page.text("verdict") and "[-1.0608 0.0620 -1.8375]" in page.text("verdict")
    assert "3 times too large" in page.text("verdict")
    page.all("#divide button")[1].click()
    assert "The same, in every bit." in page.text("verdict")
    page.all("#presets button")[3].click()  # cuts 4 + 2, still divided by N
    assert "a mean of means" in page.text("verdict")
    page.all("#divide button")[2].click()
    assert "The same, in every bit." in page.text("verdict")


def test_lessons_show_what_was_recorded(driver, given):
    page, shown = Page(driver).open(), 0
    for lesson in recorded():
        if not any(event["event"] == "title" for event in lesson["events"]):
            continue  # needs a GPU
        page.open(f"#part=lessons&lesson={lesson['number']}")
        for _ in range(200):
            if not page.js("""
                const question = [...document.querySelectorAll('.question')].find((one) => one.querySelector('.choice button, form'));
                if (question) {
                    const number = state.lesson, all = recorded.find((one) => one.number === number).events.filter((e) => e.event === 'prediction');
                    const event = all.find((e) => e.question === question.querySelector('strong').textContent);
                    const form = question.querySelector('form');
                    if (form) { form.querySelector('input').value = event.options[event.answer - 1]; form.requestSubmit(); }
                    else question.querySelectorAll('.choice button')[event.answer - 1].click();
                    return true;
                }
                if (document.getElementById('on').hidden) return false;
                document.getElementById('next-step').click();
                return true;"""):
                break
        words = page.js("return document.getElementById('talk').textContent")
        for event in lesson["events"]:
            if event["event"] in ("sentence", "tensor"):
                shown += 1
                assert event["text"] in words, f"lesson {lesson['number']}: {event['text']}"
            elif event["event"] == "table":
                for cell in (cell for row in event["text"] for cell in row):
                    shown += 1
                    assert cell in words, f"lesson {lesson['number']}: {cell}"
            elif event["event"] == "prediction":
                shown += 1
                assert event["question"] in words and event["why"] in words, f"lesson {lesson['number']}: {event['question']}"
    print(f"  {shown} sentences, tensors, cells and questions")
    assert shown > 500


def first_choice():
    """Returns the first multiple-choice question that is also the first question of its step."""
    for one in recorded():
        asked = set()
        for event in (event for event in one["events"] if event["event"] == "prediction"):
            if event["step"] not in asked and event["kind"] == "choice" and len(event["options"]) > 2:
                return one["number"], event
            asked.add(event["step"])
    raise AssertionError("no lesson has one")


def test_a_wrong_answer_is_explained_and_asked_again(driver, given):
    page = Page(driver).open()
    lesson, event = first_choice()
    page.open(f"#part=lessons&lesson={lesson}&step={event['step']}")
    soon("the question", lambda: page.all(".question .choice button"))
    wrong = [i for i in range(len(event["options"])) if i != event["answer"] - 1]
    page.all(".question .choice button")[wrong[0]].click()
    reply = page.all(".question [role=status]")[-1].text
    assert reply.endswith("Once more?") and event["mistakes"][wrong[0]] in reply
    page.all(".question .choice button")[wrong[1]].click()
    assert event["why"] in page.text("talk")


def test_hands_of_a_class_are_counted(driver, given):
    page = Page(driver).open()
    lesson, event = first_choice()
    page.open(f"#part=lessons&lesson={lesson}&step={event['step']}")
    page.find("#hands").click()
    for i in (0, 1, 1, 1):
        page.all(".question .choice button")[i].click()
    assert event["why"] not in page.text("talk")
    page.all(".question .choice button")[-1].click()
    assert f"{event['options'][0]} (1)" in page.text("talk") and f"{event['options'][1]} (3)" in page.text("talk") and event["why"] in page.text("talk")


def test_a_handout_has_every_question_and_its_answers_last(driver, given):
    page = Page(driver).open("#part=lessons&lesson=7")
    page.find("#handout").click()
    lesson = next(one for one in recorded() if one["number"] == 7)
    words, last = page.js("return document.getElementById('talk').textContent").split("Answers", 1)
    for event in lesson["events"]:
        if event["event"] == "prediction":
            assert event["question"] in words and event["why"] not in words and event["why"] in last
            assert event["kind"] == "number" or all(option in words for option in event["options"])
    pages = base64.b64decode(driver.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert pages.count(b"/Type /Page\n") >= 2, "the answers stand on a page of their own"


def test_the_questions_of_a_handout_show_no_answers(driver, given):
    for lesson in recorded():
        asked = [event for event in lesson["events"] if event["event"] == "prediction"]
        if not asked:
            continue
        page = Page(driver).open(f"#part=lessons&lesson={lesson['number']}")
        page.find("#handout").click()
        words = page.js("return document.getElementById('talk').textContent").split("Answers", 1)[0]
        for event in asked:
            assert event["question"] in words
            for text in (event["why"], *filter(None, event["mistakes"])):
                assert text not in words, f"lesson {lesson['number']}: {text}"
        assert page.js("const all = [...document.querySelectorAll('#talk img')]; return all.every((one) => one.closest('.answers'))")
        later = [event["text"] for event in lesson["events"] if event.get("step", 0) > asked[0]["step"] and event["event"] == "sentence"]
        assert not any(text in words for text in later), f"lesson {lesson['number']}"


def test_a_picture_that_shows_the_answer_is_folded_until_it_is_given(driver, given):
    page, folded = Page(driver).open(), 0
    for lesson in recorded():
        asked, events = 0, lesson["events"]
        for i, event in enumerate(events):
            asked += event["event"] == "prediction"
            next_one = next((one for one in events[i:] if one["event"] == "prediction"), None)
            if event["event"] != "graph" or next_one is None or next_one["step"] > event["step"] + 1:
                continue
            folded += 1
            page.open(f"#part=lessons&lesson={lesson['number']}&step={event['step']}")
            page.js("for (let k = 1; k <= arguments[0]; ++k) answered.add(`${state.lesson}/${k}`); show()", asked)
            is_open = "return [...document.querySelectorAll('#talk details:has(img)')].pop().open"
            assert page.js(is_open) is False, f"lesson {lesson['number']}, step {event['step']}"
            page.js("answered.add(`${state.lesson}/${arguments[0] + 1}`); show()", asked)
            assert page.js(is_open) is True
    print(f"  {folded} pictures")
    assert folded > 0


def test_each_lesson_with_something_to_try_leads_there(driver, given):
    page = Page(driver).open()
    numbers = {one["slug"]: one["number"] for one in recorded()}
    for slug, live in page.js("return Object.entries(LIVE)"):
        number = numbers[slug]
        page.open(f"#part=lessons&lesson={number}&step=99")
        page.js("for (let k = 1; k < 30; ++k) answered.add(`${state.lesson}/${k}`); show()")
        page.find("#talk a").click()
        soon("the part", lambda: page.js("return state.part !== 'lessons'"))
        assert page.text("told") == "" and all(word.replace(",", "%2C") in driver.current_url for word in live.split("&")), driver.current_url


# ---- presenting ----

def test_presenting_shows_one_step_and_hides_its_answer(driver, given):
    lesson, event = first_choice()
    page = Page(driver).open(f"#part=lessons&lesson={lesson}&step={event['step']}&present=1")
    usual = "return parseFloat(getComputedStyle(document.body).fontSize)"
    large = page.js(usual)
    assert event["question"] in page.text("talk") and event["why"] not in page.text("talk")
    others = [one["text"] for one in next(one for one in recorded() if one["number"] == lesson)["events"]
              if one["event"] == "sentence" and one["step"] != event["step"]]
    assert others and not any(text in page.text("talk") for text in others)
    body = page.find("body")
    body.send_keys(Keys.PAGE_DOWN)
    assert event["why"] in page.text("talk"), "a clicker shows the answer"
    body.send_keys(Keys.PAGE_UP if page.js("return scrollY") < 8 else Keys.ARROW_LEFT)
    assert f"step={event['step'] - 1}" in driver.current_url and "present=1" in driver.current_url
    body.send_keys(Keys.ARROW_RIGHT)
    assert event["why"] in page.text("talk") and f"step={event['step']}" in driver.current_url
    body.send_keys(Keys.ESCAPE)
    assert "present" not in driver.current_url and page.js(usual) < large / 1.15, (page.js(usual), large)


def test_presenting_digits_answer(driver, given):
    lesson, event = first_choice()
    wrong = next(i for i in range(len(event["options"])) if i != event["answer"] - 1)
    page = Page(driver).open(f"#part=lessons&lesson={lesson}&step={event['step']}&present=1")
    page.find("body").send_keys(str(wrong + 1))
    assert event["mistakes"][wrong] in page.text("talk")
    page.find("body").send_keys(str(event["answer"]))
    assert event["why"] in page.text("talk")


def test_presenting_a_number_needs_no_click_into_its_field(driver, given):
    lesson, event = next((one["number"], event) for one in recorded() for event in one["events"]
                         if event["event"] == "prediction" and event["kind"] == "number" and one["number"] == 5)
    page = Page(driver).open(f"#part=lessons&lesson={lesson}&step={event['step']}&present=1")
    wrong = next(i for i, words in enumerate(event["mistakes"]) if words)
    page.press(event["options"][wrong], Keys.ENTER)
    assert event["mistakes"][wrong] in page.text("talk")
    page.press("1")
    assert page.find("#talk input").get_attribute("value") == "1", "a second try replaces the first"
    assert event["why"] not in page.text("talk")
    page.press(Keys.PAGE_DOWN)
    assert event["why"] in page.text("talk"), "a clicker goes on out of the field"


def test_presenting_keys_change_the_step_with_any_focus(driver, given):
    page = Page(driver).open("#part=lessons&lesson=5&step=1&present=1")
    page.js("document.getElementById('lesson').focus(); scrollTo(0, document.body.scrollHeight)")
    page.press(Keys.PAGE_DOWN)
    assert page.js("return [state.lesson, state.step]") == [5, 2]
    page.js("document.getElementById('lesson').focus()")
    page.press(*[Keys.PAGE_UP] * 2)
    assert page.js("return [state.lesson, state.step, scrollY]") == [5, 1, 0]
    lesson, event = first_choice()
    page.open(f"#part=lessons&lesson={lesson}&step={event['step']}&present=1").press("h")
    assert page.text("talk").count((event.get("hints") or [event["hint"]])[0]) == 1
    assert all("counter" in page.js("return getComputedStyle(arguments[0], '::before').content", option) for option in page.all(".choice > button"))


def test_presenting_a_picture_is_one_screen(driver, given):
    try:
        for width, height in ((1280, 800), (1920, 1080)):
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
            page = Page(driver).open("#part=lessons&lesson=6&step=2&present=1")
            assert not page.find("#talk .picture").is_displayed()
            page.press("g")
            soon("the picture", lambda page=page: page.js("return document.querySelector('#talk img').naturalWidth > 0"))
            box = page.js("const box = document.querySelector('#talk img').getBoundingClientRect(); return [box.top, box.bottom, box.height]")
            assert box[0] >= 0 and box[1] <= height and box[2] > 0.8 * height, (width, box)
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_presenting_returns_from_the_toy_to_its_step(driver, given):
    lesson = next(one for one in recorded() if one["slug"] == "forgot-to-divide")
    asked = [event for event in lesson["events"] if event["event"] == "prediction"][-1]  # in the last step
    at = [lesson["number"], asked["step"], 1]
    page = Page(driver).open("#part=lessons&lesson={}&step={}&present={}".format(*at))
    page.press(str(asked["answer"]))
    page.js("scrollTo(0, document.body.scrollHeight)")
    page.js("document.querySelector('#talk > p > a').click()")
    soon("the toy", lambda: page.js("return state.part") == "toy")
    assert page.js("return scrollY") == 0
    page.find("nav a[href='#part=lessons']").click()
    soon("the lesson", lambda: page.js("return state.part") == "lessons")
    assert page.js("return [state.lesson, state.step, state.present]") == at


def test_presenting_a_long_step_is_scrolled_before_the_next(driver, given):
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 1024, "height": 300, "deviceScaleFactor": 1, "mobile": False})
    try:
        page = Page(driver).open("#part=lessons&lesson=5&step=1&present=1")
        for _ in range(30):
            at = page.js("return [state.step, document.getElementById('talk').getBoundingClientRect().bottom <= innerHeight + 8]")
            assert at[0] == 1
            if at[1]:
                break
            was = page.js("return scrollY")
            page.find("body").send_keys(Keys.PAGE_DOWN)
            assert page.js("return scrollY") > was
        assert at[1]
        page.find("body").send_keys(Keys.PAGE_DOWN)
        assert page.js("return [state.step, scrollY]") == [2, 0]
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


# ---- keyboard, links and fields ----

def test_everything_is_reached_by_the_keyboard_and_has_a_name(driver, given):
    for part in PARTS:
        page = Page(driver).open(f"#part={part}")
        wanted = page.js("""return [...document.querySelectorAll('a, button, input, select')]
            .filter((e) => !e.disabled && e.tabIndex >= 0 && e.offsetParent !== null).length""")
        reached = set()
        for _ in range(3 * wanted):
            driver.switch_to.active_element.send_keys(Keys.TAB)
            name = page.js("""const e = document.activeElement;
                e.seen ??= String(Math.random());
                const label = e.getAttribute('aria-label') || e.labels?.[0]?.textContent || e.textContent;
                return [e.seen, e.tagName, label.trim()]""")
            if name[1] in ("A", "BUTTON", "INPUT", "SELECT"):
                assert name[2], f"{part}: a {name[1]} without a name"
                reached.add(name[0])
        assert len(reached) == wanted, f"{part}: {len(reached)} of {wanted} reached by Tab"


def test_the_toy_by_keys_alone(driver, given):
    page = Page(driver).open("#part=toy")
    page.find("#divide button[aria-checked=true]").send_keys(Keys.ARROW_RIGHT)
    assert "The same, in every bit." in page.text("verdict")
    page.find("#back").send_keys(Keys.ENTER)
    assert "After 2 of 3 micro-batches." in page.text("verdict")
    page.find("[aria-label='Cut between rows 1 and 2']").send_keys(Keys.SPACE)
    assert "cuts=4%2C2" in driver.current_url and "a mean of means" in page.text("verdict")
    assert page.js("return document.activeElement.getAttribute('aria-label')") == "Cut between rows 1 and 2"


def test_a_link_brings_back_what_was_seen(driver, given):
    page = Page(driver).open("#part=toy&cuts=1,5&divide=2")
    page.put("[aria-label='row 3, number 2']", "0.75")
    link, seen = driver.current_url.split("#")[1], page.text("rows") + page.text("verdict")
    page.open("#" + link)
    assert page.text("rows") + page.text("verdict") == seen and "x=" in link


def test_bad_numbers_are_reported_next_to_their_field(driver, given):
    page = Page(driver).open("#part=toy")
    before = page.text("verdict")
    for text, words in (("abc", "is not a number: abc"), ("nan", "is not a number"), ("1e39", "is too large for 32 bits"), ("", "is empty")):
        page.put("[aria-label='w, number 1']", text)
        assert words in page.text("toy-complaint") and page.text("verdict") == before, text
    for part, field, complaint, texts in (("chain", "#layers", "chain-complaint", ("1", "65", "2.5", "x", "")),
                                          ("noise", "#size", "noise-complaint", ("0", "513", "1.5", "x", ""))):
        page.open(f"#part={part}")
        before = page.js("return document.querySelector('figcaption[aria-live], #strip-words').textContent")
        for text in texts:
            page.put(field, text)
            assert "previous value" in page.text(complaint), f"{part}: {text}"
            assert page.js("return document.querySelector('figcaption[aria-live], #strip-words').textContent") == before


def test_bad_links_lead_to_the_start_with_a_message(driver, given):
    for link, word in (("#part=moon", "part"), ("#part=toy&cuts=4,3", "cuts"), ("#part=toy&cuts=0,6", "cuts"), ("#part=toy&x=1,2", "x"),
                       ("#part=toy&w=1,2,1e39", "w"), ("#part=toy&divide=7", "divide"), ("#part=lessons&lesson=77", "lesson"),
                       ("#part=chain&keep=12", "keep"), ("#part=noise&size=nan", "size"), ("#part=noise&seed=-1", "seed")):
        page = Page(driver).open(link)
        assert f'The link\'s "{word}"' in page.text("told"), link
        assert "3 times too large" in page.text("verdict"), link


def test_without_webassembly_the_lessons_can_be_read(driver, given):
    handle = driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": "delete globalThis.WebAssembly"})
    try:
        page = Page(driver).open()
        assert "no WebAssembly" in page.text("told") and "four items" in page.text("talk")
    finally:
        driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", handle)


# ---- appearance ----

CONTRASTS = """
const parse = (colour) => { const n = colour.match(/[0-9.]+/g).map(Number); return n.length > 3 ? n : [...n, 1]; };
const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
  .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
const behind = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c[3] === 1) return c; } return [255, 255, 255, 1]; };
const low = [];
for (const e of document.querySelectorAll('body *')) {
  if (e.offsetParent === null || ![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || e.disabled) continue;
  if (['SCRIPT', 'STYLE', 'OPTION'].includes(e.tagName)) continue;
  const a = light(parse(getComputedStyle(e).color)), b = light(behind(e)), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < 4.5) low.push(`${e.tagName} "${e.textContent.trim().slice(0, 30)}" ${ratio.toFixed(2)}`);
}
return low;"""


def test_the_page_is_readable_in_each_scheme_and_size(driver, given):
    for scheme in ("light", "dark"):
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        links = {part: f"#part={part}" for part in PARTS} | {"lessons": "#part=lessons&step=9", "presenting": golden.VIEWS["presenting"]}
        for part, link in links.items():
            for width, height in SIZES:
                driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
                page = Page(driver).open(link)
                across = page.js("return document.documentElement.scrollWidth")
                assert across <= width, f"{part} is {across} wide in a window of {width}"
                low = page.js(CONTRASTS)
                assert not low, f"{part}, {scheme}: {low[:5]}"
                if given.shots:
                    driver.save_screenshot(f"{given.shots}/{part}_{scheme}_{width}.png")
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_the_page_looks_like_the_golden_pictures(driver, given):
    page, worst = Page(driver), []
    if given.keep:
        golden.FOLDER.mkdir(exist_ok=True)
        (golden.FOLDER / "fonts.txt").write_text("{} {}\n".format(*golden.fonts(page.open())), encoding="utf-8")
    if not golden.same_fonts(page.open()):
        print("  not compared: the fonts are not those of the kept pictures")
        return
    for name, fragment in golden.VIEWS.items():
        for width, height in (SIZES[0], SIZES[-1]):
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
            picture = golden.reduced(page.open(fragment))
            kept = golden.FOLDER / f"{name}_{width}.png"
            if given.keep:
                kept.write_bytes(picture)
            worst.append((*golden.difference(page, kept.read_bytes(), picture), kept.name))
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    print(f"  {len(worst)} pictures; mean difference at most {max(one[0] for one in worst):.1f}, of a tile {max(one[1] for one in worst):.0f} of 255")
    assert sum(path.stat().st_size for path in golden.FOLDER.iterdir()) < golden.MOST_BYTES
    other = [one for one in worst if not golden.alike(*one[:2])]
    assert not other, f"looks otherwise (mean, worst tile, picture): {other}; look at it, and keep it by --keep"


def test_nothing_is_fetched_and_nothing_complains(driver, given):
    driver.get_log("browser")
    for part in PARTS:
        begun = time.monotonic()
        page = Page(driver).open(f"#part={part}")
        print(f"  {part}: {time.monotonic() - begun:.2f} s")
        fetched = page.js("return performance.getEntriesByType('resource').map((e) => e.name).filter((name) => !/^(data|blob):/.test(name))")
        assert not fetched, fetched
    assert not (messages := driver.get_log("browser")), messages


def main():
    options = argparse.ArgumentParser()
    options.add_argument("engine")
    options.add_argument("lessons", type=pathlib.Path)
    options.add_argument("--seed", type=int, default=random.randrange(10**6))
    options.add_argument("--shots")
    options.add_argument("--keep", action="store_true")
    given = options.parse_args()
    if not shutil.which("chromedriver") or not shutil.which("chromium"):
        print("skipped: no chromium with its driver (chromium, chromium-driver)")
        return 77
    print(f"seed {given.seed}")
    failed = 0
    driver = browser()
    try:
        for name, test in [(n, t) for n, t in globals().items() if n.startswith("test_")]:
            try:
                test(driver, given)
                print(f"[ok] {name}", flush=True)
            except Exception as error:  # noqa: BLE001  a test may fail in any way
                failed += 1
                print(f"[FAIL] {name}: {type(error).__name__}: {str(error)[:1500]}", flush=True)
    finally:
        driver.quit()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
