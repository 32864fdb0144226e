"""Tests the page in a browser, from a file and without a network: bits, numbers, controls, sizes, colours and errors.

Usage: page_test.py PAGE_ENGINE LESSONS_FOLDER [--browser chromium|firefox|webkit] [--seed S] [--only TEXT] [--shots FOLDER]
       page_test.py PAGE_ENGINE LESSONS_FOLDER --keep   (redraws tests/web/golden; check each picture before you commit it)
"""

import argparse
import base64
import gzip
import json
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time

import chain_page
import golden
import lessons_page
import noise_page
import toy_page
from browser import PACKAGES, PAGE, ROOT, By, Keys, Page, browser, messages, missing, soon

PARTS = ["toy", "lessons", "chain", "noise"]
SIZES = [(360, 740), (1024, 768), (1920, 1080)]
MOST_BYTES = 500_000
# Tests of input and of numbers, which run in every browser. The last one leaves the focus outside of the page.
# The other tests change the window, colours or speed of Chromium.
IN_EVERY_BROWSER = """
    a_click_after_typing_is_not_lost typing_while_playing_keeps_field_and_text numbers_as_people_write_them numbers_are_read_as_people_write_them
    400_changes_in_five_seconds_raise_no_error undo_gives_back_each_change_in_every_part ten_changes_are_undone_one_by_one
    the_engine_has_native_bits a_content_security_policy_allows_the_page
    a_number_is_pulled_by_the_mouse a_code_shows_the_same_state_in_another_copy a_link_brings_back_what_was_seen a_cut_is_pulled_by_the_mouse a_cut_is_pushed_away a_cut_is_moved_by_keys
    the_guess_comes_before_the_answer a_guess_is_drawn_with_the_mouse play_scrubs_in_both_directions undo_stops_a_playback
    a_second_try_is_typed_without_a_click answers_are_kept_by_a_reload_and_a_link_but_not_undone presenting_keys
    votes_are_counted_in_two_rounds_and_hidden_until_shown a_cut_is_dragged keys_alone_can_do_everything noise_is_thrown_by_mouse noise_is_thrown_by_keys
    noise_a_held_press_throws_many_and_is_one_undo_step noise_fields_and_sliders
    everything_is_reached_by_the_keyboard_and_has_a_name
""".split()
sys.path[:0] = [str(ROOT / "web"), str(ROOT / "tests/lesson")]


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


def test_modules_without_a_browser(_, given):
    tests = sorted(map(str, (ROOT / "tests/web").glob("*.mjs")))
    result = subprocess.run(["node", "--test", *tests], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout[-3000:]
    passed = int(result.stdout.split("# pass ")[1].split()[0])
    print(f"  {passed} tests")
    assert passed >= 18


def test_a_damaged_page_shows_a_message(driver, given):
    text = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "page.html"
        for name, words in (("engine", "checksum of the engine"), ("recorded", "checksum of the recorded lessons"), ("scripts", "checksum of its scripts")):
            at = text.index(f'id="{name}">') + 20_000
            other = "A" if text[at] != "A" else "B"
            copy.write_text(text[:at] + other + text[at + 1:], encoding="utf-8")
            page = Page(driver, copy).open()
            soon(words, lambda page=page, words=words: words in page.text("status"))


def test_an_unfinished_page_reports_only_after_a_while(driver, given):
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "page.html"
        text = PAGE.read_text(encoding="utf-8")
        copy.write_text(text[: len(text) - 900], encoding="utf-8")
        driver.get(f"file://{copy}")
        trouble = driver.find_element(By.ID, "trouble")
        assert not trouble.is_displayed(), "a page that is still loading does not say that it is broken"
        driver.execute_script("document.getElementById('trouble').getAnimations().forEach((one) => one.finish())")  # 15 seconds later
        assert trouble.is_displayed() and "incomplete" in trouble.text
    page = Page(driver).open()
    assert not page.all("#trouble")


def test_a_content_security_policy_allows_the_page(driver, given):
    policy = "default-src 'none'; script-src 'unsafe-inline' 'wasm-unsafe-eval'; style-src 'unsafe-inline'; img-src data:"
    text = PAGE.read_text(encoding="utf-8").replace("<head>", f'<head><meta http-equiv="Content-Security-Policy" content="{policy}">', 1)
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "page.html"
        copy.write_text(text, encoding="utf-8")
        messages(driver)
        page = Page(driver, copy).open("#part=toy&cuts=2,2,2&at=3")
        assert "3 times too large" in page.text("verdict") and not messages(driver)


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
        asked.append(f"tally.ask('toy', Float32Array.from({x}), 18, Float32Array.from({w}), Int32Array.from({cuts}), {len(cuts)}, {divide})")
        lines.append(f"toy 18 {' '.join(str(bits(v)) for v in x)} 3 {' '.join(str(bits(v)) for v in w)} "
                     f"{len(cuts)} {' '.join(map(str, cuts))} {divide}")
    for _ in range(10):
        parts = draw.randint(1, 8)
        ends = sorted(draw.sample(range(1, 64), parts - 1)) + [64]
        sizes = [end - begin for begin, end in zip([0, *ends], ends)]
        asked.append(f"tally.ask('batch_memory', Int32Array.from({sizes}), {parts})")
        lines.append(f"batch_memory {parts} {' '.join(map(str, sizes))}")
        seed, size = draw.randrange(1000), draw.randint(1, 40)
        asked.append(f"tally.ask('noise', {seed}, {size}, 20)")
        lines.append(f"noise {seed} {size} 20")
    native = subprocess.run([given.engine], input="\n".join(lines), capture_output=True, text=True, check=True).stdout.splitlines()
    for request, line, expected in zip(asked, lines, native, strict=True):
        answer = page.js(f"return {request}")
        assert answer == json.loads(expected), f"seed {given.seed}: {line}: {json.dumps(answer)[:300]} natively is {expected[:300]}"
    assert "exactly the same bits" in page.text("badge")


# ---- the page as a whole ----

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


def test_undo_gives_back_each_change_in_every_part(driver, given):
    page = Page(driver).open("#part=toy&cuts=4,2&divide=1&at=2")
    page.all("#toy .bar .choice")[1].find_elements(By.TAG_NAME, "button")[2].click()
    page.find("nav a[href='#part=noise']").click()
    page.find("nav a[href='#part=lessons']").click()
    page.find("nav a[href='#part=toy']").click()
    assert page.js("return tally.now().toy") | {"divide": 2} == page.js("return tally.now().toy"), "the toy is as it was left"
    for wanted in ("lessons", "noise", "toy"):
        page.undo()
        assert page.js("return tally.now().part") == wanted
    page.undo()
    assert page.js("return tally.now().toy.divide") == 1
    page.hold(Keys.CONTROL, "y")
    assert page.js("return tally.now().toy.divide") == 2


def test_ten_changes_are_undone_one_by_one(driver, given):
    page = Page(driver).open()
    cuts, scalings = (group.find_elements(By.TAG_NAME, "button") for group in page.all("#toy .bar .choice"))
    seen = []
    for button in (*cuts[1:], scalings[1], scalings[2], scalings[0], *cuts[:3]):
        seen.append(page.js("return [tally.now().toy.cuts, tally.now().toy.divide]"))
        button.click()
    assert len(seen) == 10
    for toy in reversed(seen):
        page.undo()
        assert page.js("return [tally.now().toy.cuts, tally.now().toy.divide]") == toy


def test_a_code_shows_the_same_state_in_another_copy(driver, given):
    page = Page(driver).open("#part=toy&cuts=2,2,2&divide=1&at=3")
    code = page.find("#code").get_attribute("value")
    assert code == "S 222 n"
    other = Page(driver).open("#part=noise")
    other.put("#code", code)
    assert other.js("const { part, toy } = tally.now(); return [part, toy.cuts, toy.divide, toy.at]") == ["toy", [2, 2, 2], 1, 0]
    other.put("#code", "S 9 q")
    assert "is not a code" in other.text("status") and other.js("return tally.now().toy.cuts") == [2, 2, 2]


def test_a_link_that_cannot_be_read_keeps_the_rest(driver, given):
    for link, word in (("#part=moon", "part"), ("#part=toy&cuts=4,3&divide=2", "cuts"), ("#part=toy&cuts=0,6", "cuts"), ("#part=toy&x=1,2", "x"),
                       ("#part=toy&w=1,2,1e39", "w"), ("#part=toy&divide=7", "divide"), ("#part=chain&layers=1", "layers"),
                       ("#part=noise&size=nan", "size"), ("#part=noise&seed=-1", "seed"), ("#part=noise&size=0x10", "size")):
        page = Page(driver).open(link)
        assert f"({word})" in page.text("status"), link
    assert Page(driver).open("#part=toy&cuts=4,3&divide=2").js("return tally.now().toy.divide") == 2


def test_400_changes_in_five_seconds_raise_no_error(driver, given):
    page = Page(driver).open("#part=noise")
    messages(driver)
    page.js("for (let i = 0; i < 400; ++i) tally.change({ noise: { seed: i } })")
    soon("the link", lambda: "seed=399" in driver.current_url)
    assert not messages(driver) and not page.text("status")


def test_without_webassembly_the_lessons_can_be_read(driver, given):
    handle = driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": "delete globalThis.WebAssembly"})
    try:
        page = Page(driver).open()
        assert "no WebAssembly" in page.text("status") and "does not fit" in page.text("lessons")
        page.open("#part=lessons&lesson=6&step=2&present=2")
        page.press(Keys.PAGE_DOWN)
        assert page.js("return tally.now().lessons.step") == 3, "without an engine, a class sees the lesson"
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
  if (['SCRIPT', 'STYLE', 'OPTION'].includes(e.tagName) || e.getAttribute('aria-hidden') === 'true') continue;
  const a = light(parse(getComputedStyle(e).color)), b = light(behind(e)), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < 4.5) low.push(`${e.tagName} "${e.textContent.trim().slice(0, 30)}" ${ratio.toFixed(2)}`);
}
return low;"""


def test_the_page_is_readable_in_each_scheme_and_size(driver, given):
    for scheme in ("light", "dark"):
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        links = {part: f"#part={part}" for part in PARTS} | golden.VIEWS
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


CHOSEN = "const of = getComputedStyle(arguments[0]); return [of.backgroundColor, of.borderTopWidth, of.borderTopStyle, of.outlineStyle, of.textDecorationLine]"


def test_forced_colours_show_what_is_chosen(driver, given):
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "forced-colors", "value": "active"}]})
    try:
        page = Page(driver).open("#part=toy&cuts=4,2")
        for group in page.all("#toy .choice"):
            buttons = group.find_elements(By.TAG_NAME, "button")
            chosen = [page.js(CHOSEN, one) for one in buttons if one.get_attribute("aria-checked") == "true"]
            others = [page.js(CHOSEN, one) for one in buttons if one.get_attribute("aria-checked") == "false"]
            assert all(one not in others for one in chosen)
    finally:
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
            there, until = golden.difference(page, kept.read_bytes(), picture), time.monotonic() + 5
            while not golden.alike(*there) and time.monotonic() < until:  # the window may still take its new size
                there = golden.difference(page, kept.read_bytes(), golden.reduced(page))
            worst.append((*there, kept.name))
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    print(f"  {len(worst)} pictures; mean difference at most {max(one[0] for one in worst):.1f}, of a tile {max(one[1] for one in worst):.0f} of 255")
    assert sum(path.stat().st_size for path in golden.FOLDER.iterdir()) < golden.MOST_BYTES
    other = [one for one in worst if not golden.alike(*one[:2])]
    assert not other, f"looks otherwise (mean, worst tile, picture): {other}; look at it, and keep it by --keep"


def test_nothing_is_fetched_and_nothing_complains(driver, given):
    messages(driver)
    for part in PARTS:
        begun = time.monotonic()
        page = Page(driver).open(f"#part={part}")
        print(f"  {part}: {time.monotonic() - begun:.2f} s")
        fetched = page.js("return performance.getEntriesByType('resource').map((e) => e.name).filter((name) => !/^(data|blob):/.test(name))")
        assert not fetched, fetched
    complaints = messages(driver)
    assert not complaints, complaints


def main():
    options = argparse.ArgumentParser()
    options.add_argument("engine")
    options.add_argument("lessons", type=pathlib.Path)
    options.add_argument("--browser", choices=PACKAGES, default="chromium")
    options.add_argument("--seed", type=int, default=random.randrange(10**6))
    options.add_argument("--only", default="")
    options.add_argument("--shots")
    options.add_argument("--keep", action="store_true")
    given = options.parse_args()
    if packages := missing(given.browser) or ("" if shutil.which("node") else "nodejs"):
        print(f"skipped: this machine lacks {packages}")
        return 77
    print(f"seed {given.seed}")
    failed = 0
    driver = browser(given.browser)
    tests = {name: test for module in (sys.modules[__name__], toy_page, lessons_page, chain_page, noise_page)
             for name, test in vars(module).items() if name.startswith("test_") and given.only in name}
    if given.browser != "chromium":
        tests = {f"test_{name}": tests[f"test_{name}"] for name in IN_EVERY_BROWSER if given.only in name}
    try:
        for name, test in tests.items():
            try:
                test(driver, given)
                print(f"[ok] {name}", flush=True)
            except Exception as error:  # noqa: BLE001  a test may fail in any way
                failed += 1
                print(f"[FAIL] {name}: {type(error).__name__}: {str(error)[:1500]}", flush=True)
    finally:
        driver.quit()
    return 1 if failed or not tests else 0


if __name__ == "__main__":
    sys.exit(main())
