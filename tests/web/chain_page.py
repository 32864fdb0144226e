"""Tests of the part "Checkpoints": memory and recomputation of a chain that is cut into segments."""
import json
import random
import re
import subprocess

from browser import ActionChains, Keys, Page, soon

# Reads the highest bar by the labels of its axis, as a learner sees it. The outline of a backward bar is half a pixel outside its box.
HIGHEST_BAR = """
const labels = [...document.querySelectorAll("#chain .picture .levels text")], last = labels.at(-1);
const at = (label) => Number(label.getAttribute("y"));
const tops = [...document.querySelectorAll("#chain .picture .bar")].map((bar) => {
  const { y, width, height } = bar.getBBox();
  return width > 0 && height > 0 ? y - (bar.classList.contains("backward") ? 0.5 : 0) : Infinity;
});
const bottom = at(labels[0]) - 4; // labels stand 4 pixels below the middle of their text
return (bottom - Math.min(...tops)) * Number(last.textContent) / (at(labels[0]) - at(last));"""

# Returns the number of outputs that the field shows as in memory at the end of each moment.
OUTPUTS_SHOWN = """
const boxes = (selector) => [...document.querySelectorAll(`#chain .picture ${selector}`)].map((element) => element.getBoundingClientRect());
const bars = boxes(".bar"), alive = bars.map(() => new Set());
for (const life of boxes(".lives :not(.backward)"))
  bars.forEach((bar, at) => {
    const x = bar.x + bar.width / 2;
    if (life.height > 1 && life.x <= x && x < life.right) alive[at].add(Math.round(life.y));
  });
return alive.map((outputs) => outputs.size);"""


def opened(driver, fields=""):
    return Page(driver).open(f"#part=chain{fields}")


def chain(page):
    return page.js("return tally.now().chain")


def words(page):
    return page.text("chain-words")


def peak_in_words(page):
    return float(re.search(r"Peak memory ([\d.]+) KiB", words(page))[1])


def layers_again(page):
    return int(re.search(r"; (\d+) layers? runs? again", words(page))[1])


def cuts_to_try(given, layers, count):
    draw = random.Random(given.seed)
    return [[0, *sorted(draw.sample(range(1, layers), draw.randrange(layers)))] for _ in range(count)]


def press_preset(page, name):
    next(button for button in page.all("#chain .choice button") if button.text.startswith(name)).click()


def budget(page):
    return page.find("#budget")


def test_the_highest_bar_is_the_number_in_the_sentence(driver, given):
    page = opened(driver)
    for layers in (2, 16, 64):
        for cuts in ([0], list(range(layers)), *cuts_to_try(given, layers, 5)):
            page.js("tally.change({chain: {layers: arguments[0], cuts: arguments[1], budget: 0}})", layers, cuts)
            assert abs(page.js(HIGHEST_BAR) - peak_in_words(page)) < 0.06, f"seed {given.seed}: {layers} layers, cuts {cuts}: {words(page)}"
            mark = page.find("#chain .peak").text
            assert f"{peak_in_words(page):.1f} KiB" in mark, mark
            assert "The gradient is the same, bit for bit." in words(page)


def test_the_field_shows_the_outputs_that_the_engine_keeps(driver, given):
    page = opened(driver)
    for cuts in ([0], list(range(12)), *cuts_to_try(given, 12, 10)):
        page.js("tally.change({chain: {layers: 12, cuts: arguments[0], budget: 0}})", cuts)
        starts = [int(layer in cuts) for layer in range(12)]
        moments = page.js(f"return tally.ask('chain', Int32Array.from({starts}), 12)")["moments"]
        backward = [moment["kind"] for moment in moments].index("backward")
        for at, (moment, shown) in enumerate(zip(moments, page.js(OUTPUTS_SHOWN), strict=True)):
            rest = 0 if at < backward else 64 if at + 1 == len(moments) else 1024 + 64  # the loss, and one gradient
            assert moment["after"] == 1024 * shown + rest, f"seed {given.seed}: cuts {cuts}, moment {at}: {shown} outputs, {moment}"


def test_buttons_do_what_their_names_say(driver, given):
    page = opened(driver)
    press_preset(page, "no checkpoints")
    assert layers_again(page) == 0 and "nothing runs again" in words(page) and chain(page)["cuts"] == [0]
    whole = peak_in_words(page)
    press_preset(page, "one segment per layer")
    assert layers_again(page) == 15 and "saves nothing" in words(page) and peak_in_words(page) == whole
    press_preset(page, "segments of 4")
    assert chain(page)["cuts"] == [0, 4, 8, 12] and 0 < layers_again(page) < 15 and peak_in_words(page) < whole
    page.put("#layers", "25")
    press_preset(page, "√25 segments")
    assert chain(page)["cuts"] == [0, 5, 10, 15, 20]
    for layers in (2, 9, 64):
        page.put("#layers", str(layers))
        press_preset(page, "one segment per layer")
        assert layers_again(page) == layers - 1


def test_a_click_cuts_between_two_segments(driver, given):
    page = opened(driver)
    assert len(page.all("#chain .brackets path")) == 4 and len(page.all("#chain .cuts line")) == 3
    page.find("#chain [data-gap='2']").click()
    assert chain(page)["cuts"] == [0, 2, 4, 8, 12]
    assert len(page.all("#chain .brackets path")) == 5 and len(page.all("#chain .cuts line")) == 4
    page.find("#chain [data-gap='8']").click()
    assert chain(page)["cuts"] == [0, 2, 4, 12]
    page.find("#undo").click()
    page.find("#undo").click()
    assert chain(page)["cuts"] == [0, 4, 8, 12]
    surface = page.find("#chain .surface")  # the middle of 17 rows: the input and 16 layers
    ActionChains(driver).move_to_element_with_offset(surface, 0, -3).click().perform()
    assert chain(page)["cuts"] == [0, 4, 12], chain(page)


def test_a_cut_is_dragged(driver, given):
    page = opened(driver)
    from_, to = page.find("#chain [data-gap='4']"), page.find("#chain [data-gap='6']")
    ActionChains(driver).click_and_hold(from_).move_to_element(page.find("#chain [data-gap='5']")).move_to_element(to).perform()
    assert chain(page)["cuts"] == [0, 6, 8, 12], "the cut follows before the button is released"
    ActionChains(driver).release().perform()
    assert chain(page)["cuts"] == [0, 6, 8, 12]
    page.find("#undo").click()
    assert chain(page)["cuts"] == [0, 4, 8, 12], "one drag is one step of undo"


def test_dragging_the_budget_keeps_the_peak_within_it(driver, given):
    page = opened(driver, "&layers=24&cuts=0")
    page.js("document.querySelector('#chain .picture').scrollIntoView({block: 'center'})")
    runs = []
    ActionChains(driver).click_and_hold(budget(page)).perform()
    for _ in range(45):
        ActionChains(driver).move_by_offset(0, 7).perform()
        state = chain(page)
        if "No segments fit" in words(page):
            break
        assert state["budget"] == 0 or page.js(HIGHEST_BAR) * 1024 <= state["budget"] + 1, f"{state}: {words(page)}"
        assert state["budget"] == 0 or "✓ Within the budget" in words(page)
        runs.append(layers_again(page))
    else:
        raise AssertionError("the lowest budget still fits")
    least = float(re.search(r"least possible is ([\d.]+) KiB", words(page))[1])
    assert peak_in_words(page) == least and state["budget"] < least * 1024
    assert runs == sorted(runs) and runs[0] < runs[-1], f"a lower budget needs more runs: {runs}"
    ActionChains(driver).release().perform()
    page.find("#undo").click()
    assert chain(page) == {"layers": 24, "cuts": [0], "budget": 0}, "one drag is one step of undo"


def test_a_finger_drags_the_budget(driver, given):
    page = opened(driver)
    page.js("document.querySelector('#chain .picture').scrollIntoView({block: 'center'})")
    scrolled = page.js("return scrollY")
    handle = page.js("return document.querySelector('#budget .handle').getBoundingClientRect().toJSON()")
    x, y = handle["x"] + 5, handle["y"] + handle["height"] / 2

    def touch(kind, *points):
        driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": list(points)})
    touch("touchStart", {"x": x, "y": y})
    for by in range(10, 61, 10):
        touch("touchMove", {"x": x, "y": y + by})
    touch("touchEnd")
    assert chain(page)["budget"] > 0 and "✓ Within the budget" in words(page) and page.js("return scrollY") == scrolled
    page.undo()
    assert chain(page) == {"layers": 16, "cuts": [0, 4, 8, 12], "budget": 0}, "one drag is one step of undo"


def test_own_cuts_are_compared_with_the_budget(driver, given):
    page = opened(driver, "&layers=16&cuts=0,4,8,12&budget=9472")
    assert "✓ Within the budget" in words(page), words(page)
    page.find("#chain [data-gap='8']").click()
    assert "✗ More than the budget" in words(page) and chain(page)["budget"] == 9472


def test_forward_and_recomputed_differ_without_colour(driver, given):
    page = opened(driver)
    light = {}
    for kind in ("forward", "again", "backward"):
        cell = page.find(f"#chain .lives .{kind}")
        light[kind] = cell.value_of_css_property("fill"), cell.value_of_css_property("stroke")
    assert "hatch" in light["again"][0] and "hatch" not in light["forward"][0]
    assert page.all("#hatch .hatch-line"), "the pattern exists"
    assert light["backward"][1] != "none" and light["backward"][0] != light["forward"][0]
    legend = page.find("#chain .legend").text
    assert all(word in legend for word in ("forward", "recomputed", "backward"))


def test_keys_alone_can_do_everything(driver, given):
    page = opened(driver)
    page.js("document.querySelector('#chain .gap[tabindex=\"0\"]').focus()")
    focused = lambda: page.js("return document.activeElement.dataset.gap ?? document.activeElement.id")  # noqa: E731
    assert page.js("return document.querySelectorAll('#chain .gap[tabindex=\"0\"]').length") == 1
    page.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert focused() == "3"
    page.press(Keys.SPACE)
    assert chain(page)["cuts"] == [0, 3, 4, 8, 12] and focused() == "3"
    assert page.js("return document.activeElement.getAttribute('aria-pressed')") == "true"
    page.hold(Keys.SHIFT, Keys.ARROW_LEFT)
    assert chain(page)["cuts"] == [0, 2, 4, 8, 12] and focused() == "2"
    page.press(Keys.END)
    assert focused() == "15"
    page.press(Keys.TAB)
    assert focused() == "budget", "one Tab leaves the toolbar"
    page.press(Keys.END)
    assert chain(page)["budget"] == 0 and "none" in budget(page).get_attribute("aria-valuetext")
    page.press(Keys.PAGE_DOWN, Keys.PAGE_DOWN, Keys.ARROW_DOWN)
    bytes_ = chain(page)["budget"]
    assert bytes_ > 0 and budget(page).get_attribute("aria-valuenow") == str(bytes_)
    assert budget(page).get_attribute("aria-valuetext") == f"{bytes_ / 1024:.2f} KiB" and focused() == "budget"
    page.press(Keys.HOME)
    assert "No segments fit" in words(page)
    page.undo()
    assert chain(page)["budget"] == bytes_


def test_a_wrong_number_of_layers_is_refused_next_to_the_field(driver, given):
    page = opened(driver)
    for wrong in ("1", "65", "2.5", "x", ""):
        page.put("#layers", wrong)
        assert page.text("layers-complaint") and chain(page)["layers"] == 16, wrong
    page.put("#layers", "12")
    assert page.text("layers-complaint") == "" and chain(page) == {"layers": 12, "cuts": [0, 4, 8], "budget": 0}


def test_tries_leave_dots_over_the_frontiers(driver, given):
    page = opened(driver)
    soon("the frontiers", lambda: len(page.all("#chain .points .equal")) > 2 and len(page.all("#chain .points .revolve")) > 4)
    before = len(page.all("#chain .points .try"))
    press_preset(page, "no checkpoints")
    page.find("#chain [data-gap='6']").click()
    assert len(page.all("#chain .points .try")) == before + 2


def test_the_table_compares_four_ways(driver, given):
    page = opened(driver, "&layers=16&cuts=0,2,3,9")
    soon("Revolve", lambda: "…" not in page.text("chain-table"))
    rows = page.js("""
        const texts = (row) => [...row.cells].map((cell) => cell.textContent);
        return [...document.querySelectorAll("#chain-table tbody tr")].map(texts);""")
    kib = [float(row[1].split()[0]) for row in rows]
    assert rows[0][0] == "no checkpoints" and rows[0][2] == "0"
    assert "2 + 1 + 6 + 7" in rows[1][0] and kib[1] == peak_in_words(page) and int(rows[1][2]) == layers_again(page)
    assert kib[2] <= kib[1] and int(rows[2][2]) <= int(rows[1][2]) and "4 snapshots" in rows[3][0]


def test_a_long_chain_changes_many_times(driver, given):
    page = opened(driver, "&layers=64&cuts=0")
    soon("the frontiers", lambda: len(page.all("#chain .points .revolve")) > 4)
    took = page.js("""
        const took = [];
        for (let i = 0; i < 20; ++i) {
          const cuts = [0, 5 + i, 30 + (i % 3), 50 - (i % 5)], begun = performance.now();
          tally.change({chain: {cuts}}, "test");
          document.body.getBoundingClientRect();
          took.push(performance.now() - begun);
        }
        return took.sort((a, b) => a - b);""")
    print(f"  a change of 64 layers takes {took[0]:.0f} to {took[-1]:.0f} ms, half of them at most {took[10]:.0f} ms")
    assert page.js("return tally.now().chain.cuts") == [0, 24, 31, 46] and not page.text("status")


def test_the_chain_of_the_engine_has_native_answers(driver, given):
    page, draw, asked, lines = opened(driver), random.Random(given.seed), [], []
    for _ in range(10):
        layers = draw.randint(2, 24)
        starts = [draw.randrange(2) for _ in range(layers)]
        asked.append(f"ask('chain', Int32Array.from({starts}), {layers})")
        lines.append(f"chain {layers} {' '.join(map(str, starts))}")
        for name, limit in (("chain_fit", draw.randrange(30_000)), ("chain_revolve", draw.randint(1, layers))):
            asked.append(f"ask('{name}', {layers}, {limit})")
            lines.append(f"{name} {layers} {limit}")
    native = subprocess.run([given.engine], input="\n".join(lines), capture_output=True, text=True, check=True).stdout.splitlines()
    for request, expected in zip(asked, native, strict=True):
        answer = page.js(f"return tally.{request}")
        assert answer == json.loads(expected), f"seed {given.seed}: {request}: {json.dumps(answer)[:300]} natively is {expected[:300]}"


def starts_of(sizes):
    return [int(i == 0) for size in sizes for i in range(size)]


def test_the_segments_of_a_budget_are_the_best_of_all(_, given):
    def ask(lines):
        answers = subprocess.run([given.engine], input="\n".join(lines), capture_output=True, text=True, check=True).stdout.splitlines()
        return [json.loads(answer) for answer in answers]

    def run(chains):
        return ask([f"chain {len(starts)} {' '.join(map(str, starts))}" for starts in chains])
    for layers in range(2, 10):
        chains = [[1, *(number >> i & 1 for i in range(layers - 1))] for number in range(1 << (layers - 1))]
        runs = run(chains)
        for starts, each in zip(chains, runs, strict=True):
            assert each["same"] and each["peak"] == max(moment["peak"] for moment in each["moments"]), f"{starts}: {each}"
            assert each["again"] == len(each["moments"]) - 2 * layers, f"{starts}: {each}"
        peaks = sorted({each["peak"] for each in runs})
        fits = ask([f"chain_fit {layers} {peak}" for peak in (peaks[0] - 1, *peaks)])
        assert not fits[0]["fits"] and fits[0]["peak"] == peaks[0], f"{layers} layers: {fits[0]}, the least is {peaks[0]}"
        for peak, fit, fitted in zip(peaks, fits[1:], run([starts_of(fit["sizes"]) for fit in fits[1:]]), strict=True):
            fewest = min(each["again"] for each in runs if each["peak"] <= peak)
            assert fit["fits"] and fitted["peak"] == fit["peak"] <= peak, f"{layers} layers, {peak} bytes: {fit}"
            assert fitted["again"] == fewest, f"{layers} layers, {peak} bytes: {fit}, {fewest} runs suffice"
