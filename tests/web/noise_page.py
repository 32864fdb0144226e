"""Tests the noise of gradients: throwing, what is measured, the dots and their law, fields, links, undo and keys."""

import math
import re
import struct

from browser import ActionChains, Keys, Page, soon

PRESETS = ["8", "64", "4 × 16", "16 × 4", "512"]


def noise(page):
    return page.js("return tally.now().noise")


def thrown(page):
    return noise(page)["thrown"]


def choose(page, size, count):
    page.js("tally.change({ noise: { size: arguments[0], count: arguments[1], thrown: 0 } })", size, count)


def throw_many(page, size, count, throws):
    """Throws a setting by keys, and the last throws by one change, since 200 key presses take long."""
    choose(page, size, count)
    page.js("tally.change({ noise: { thrown: arguments[0] } })", throws - 1)
    page.find("#throw").send_keys(Keys.ENTER)
    assert thrown(page) == throws


def number(one):
    return struct.unpack(">f", bytes.fromhex(one["bits"]))[0]


def gradients(page, seed, size, count, throws):
    """Returns the full gradient and the mean gradient of each throw, from the engine."""
    answer = page.js("return tally.ask('noise', ...arguments)", seed, size, count * throws)
    points = [[number(one) for one in point] for point in answer["points"]]
    means = [[sum(point[axis] for point in points[k * count:(k + 1) * count]) / count for axis in (0, 1)] for k in range(throws)]
    return [number(one) for one in answer["full"]], means


def spread(page, seed, size, count, throws):
    full, means = gradients(page, seed, size, count, throws)
    return math.sqrt(sum((x - full[0]) ** 2 + (y - full[1]) ** 2 for x, y in means) / throws)


def said(page):
    """Returns the distance in the sentence."""
    return float(re.search(r"full gradient is ([\d.]+)\.(?: |$)", page.text("noise-words"))[1])


def preset(page, name):
    return page.all("#noise .choice button")[PRESETS.index(name)]


def hold(page, selector, throws):
    """Holds the mouse button down until so many throws were thrown."""
    ActionChains(page.driver).click_and_hold(page.find(selector)).perform()
    soon(f"{throws} throws", lambda: thrown(page) >= throws)
    ActionChains(page.driver).release().perform()


def dots(page):
    return {mark.get_attribute("data-key") for mark in page.all("#plot .dot")}


def sized(driver, width, height):
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def test_noise_is_thrown_by_mouse(driver, given):
    page = Page(driver).open("#part=noise")
    assert page.text("noise-lead").startswith("Throw a micro-batch") and not page.all("#plane .thrown")
    page.find("#throw").click()
    assert thrown(page) == 1
    page.find("#plane").click()
    assert thrown(page) == 2
    soon("two points", lambda: len(page.all("#plane .thrown")) == 2)
    assert "2 throws of 8 items" in page.text("noise-words")


def test_noise_is_thrown_by_keys(driver, given):
    page = Page(driver).open("#part=noise")
    page.press(Keys.SPACE)
    assert thrown(page) == 1, "Space throws without a focus"
    page.find("#throw").send_keys(Keys.SPACE)
    assert thrown(page) == 2, "Space throws once with the focus on the button"
    page.find("#throw").send_keys(Keys.ENTER)
    assert thrown(page) == 3
    preset(page, "64").send_keys(Keys.SPACE)
    assert noise(page)["size"] == 64 and thrown(page) == 0, "Space on another button presses that button only"
    page.find("#noise-seed").send_keys(Keys.SPACE)
    assert thrown(page) == 0, "Space in a field is typed"
    page.js("document.getElementById('throw').click()")
    assert thrown(page) == 1, "assistive technology clicks"


def test_noise_a_held_press_throws_many_and_is_one_undo_step(driver, given):
    for selector in ("#throw", "#plane"):
        page = Page(driver).open("#part=noise")
        hold(page, selector, 25)
        soon("the dot", lambda page=page: dots(page) == {"8"})
        count = thrown(page)
        page.js("return new Promise((done) => setTimeout(done, 300))")
        assert thrown(page) == count, "the throws stop with the press"
        page.find("#undo").click()
        assert thrown(page) == 0 and dots(page) == set()
        page.find("#redo").click()
        assert thrown(page) == count and dots(page) == {"8"}
    page = Page(driver).open("#part=noise")
    ActionChains(driver).key_down(Keys.SPACE).perform()
    soon("many throws", lambda: thrown(page) >= 10)
    assert page.find("#noise-words").get_attribute("aria-busy") == "true", "not each throw is announced"
    ActionChains(driver).key_up(Keys.SPACE).perform()
    count = thrown(page)
    assert page.find("#noise-words").get_attribute("aria-busy") == "false"
    page.js("return new Promise((done) => setTimeout(done, 300))")
    assert thrown(page) == count


def test_noise_the_sentence_is_the_root_mean_square_of_the_engine(driver, given):
    page = Page(driver).open("#part=noise")
    for size, count, throws in ((8, 1, 1), (8, 1, 37), (16, 4, 200), (3, 7, 30), (512, 31, 32)):
        throw_many(page, size, count, throws)
        wanted = spread(page, 0, size, count, throws)
        assert abs(said(page) - wanted) < 0.006 * wanted, (size, count, said(page), wanted)
        words = page.text("noise-words")
        assert words.startswith(f"{throws} throw") and (f"{count} × {size} items" if count > 1 else f"{size} items") in words


def test_noise_points_are_where_the_engine_says(driver, given):
    page = Page(driver).open("#part=noise&size=8&thrown=30&seed=5")
    full, means = gradients(page, 5, 8, 1, 30)
    ring = page.js("const e = document.querySelector('#plane .full-gradient'); return [e.cx.baseVal.value, e.cy.baseVal.value]")
    places = page.js("""return [...document.querySelectorAll('#plane .thrown')]
        .map((e) => [e.dataset.key, e.cx.baseVal.value, e.cy.baseVal.value])""")
    for key, x, y in places:
        mean = means[int(re.match(r"\d+", key)[0])]
        assert abs(x - ring[0] - 48 * (mean[0] - full[0])) < 0.01 and abs(ring[1] - y - 48 * (mean[1] - full[1])) < 0.01


def test_noise_accumulation_has_the_noise_of_one_large_batch(driver, given):
    page = Page(driver).open("#part=noise")
    throw_many(page, 64, 1, 200)
    assert page.text("noise-pair") == ""
    throw_many(page, 16, 4, 200)
    found = {(size, count): distance for size, count, _, distance in noise(page)["found"]}
    assert abs(found[64, 1] / found[16, 4] - 1) < 0.2, found
    assert "Accumulating 4 micro-batches of 16 has the noise of one batch of 64" in page.text("noise-pair")
    assert dots(page) == {"64", "4 × 16"}
    places = page.js("return [...document.querySelectorAll('#plot .dot')].map((e) => e.transform.baseVal[0].matrix.e)")
    assert abs(places[0] - places[1]) < 0.01, "both dots are above the same number of items"


def test_noise_a_throw_of_many_lays_arrows_tip_to_tail(driver, given):
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]})
    try:
        page = Page(driver).open("#part=noise&count=4")
        page.find("#throw").click()
        corners = page.js("return document.querySelector('#plane polyline').getAttribute('points')").split()
        assert len(corners) == 5, "with reduced motion, all four arrows appear at once"
        assert len(page.all("#plane .micro-batch")) == 4 and len(page.all("#plane .thrown")) == 1
        last = page.find("#plane .latest")
        assert corners[-1] == f"{last.get_attribute('cx')},{last.get_attribute('cy')}"
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_noise_an_arrow_flies(driver, given):
    page = Page(driver).open("#part=noise&count=8")
    page.js("""globalThis.seen = new Set();
        const look = () => {
            seen.add(document.querySelector('#plane polyline').getAttribute('points').split(' ').length);
            requestAnimationFrame(look);
        };
        look();""")
    page.find("#throw").click()
    soon("the end of the flight", lambda: page.js("return seen.has(9)"))
    assert page.js("return seen.size") > 3, "the arrows appear in order"


def test_noise_outside_points_are_counted(driver, given):
    page = Page(driver).open("#part=noise&size=1&thrown=200")
    full, means = gradients(page, 0, 1, 1, 200)
    outside = sum(abs(x - full[0]) > 290 / 48 or abs(y - full[1]) > 5 for x, y in means)
    assert outside > 1 and f"{outside} lie outside the frame." in page.text("noise-words")
    assert len(page.all("#plane .outside")) == outside and len(page.all("#plane .thrown")) == 200 - outside
    assert all(page.js("""const frame = document.querySelector('#plane').getBoundingClientRect();
        return [...document.querySelectorAll('#plane .outside')].map((mark) => mark.getBoundingClientRect()).map((box) =>
            box.left >= frame.left - 1 && box.right <= frame.right + 1 && box.top >= frame.top - 1 && box.bottom <= frame.bottom + 1)"""))
    page.open("#part=noise&size=8&thrown=20")
    page.find("#near").click()
    assert "outside the frame" in page.text("noise-words"), "zooming in leaves points outside"


def test_noise_the_law_is_shown_by_four_dots_or_on_request(driver, given):
    page = Page(driver).open("#part=noise")
    visible = "return getComputedStyle(document.querySelector('#plot .law')).visibility === 'visible'"
    assert not page.find("#law").is_enabled()
    throw_many(page, 8, 1, 20)
    assert not page.js(visible)
    page.find("#law").click()
    assert page.js(visible) and page.find("#law").get_attribute("aria-pressed") == "true"
    page.find("#law").click()
    assert not page.js(visible)
    throw_many(page, 64, 1, 20)
    assert "N = 4" in page.text("noise-lead"), "the sentence leads to accumulation"
    throw_many(page, 16, 4, 20)
    assert not page.js(visible)
    throw_many(page, 512, 1, 20)
    assert page.js(visible) and "four times as many items" in page.text("noise-lead").lower()
    slope = float(re.search(r"The dots have slope −([\d.]+)\.", page.text("law-words"))[1])
    assert abs(slope - 0.5) < 0.1, slope
    line = page.js("""const law = document.querySelector('#plot .law');
        return ['x1', 'y1', 'x2', 'y2'].map((name) => Number(law.getAttribute(name)))""")
    assert abs((line[3] - line[1]) / (line[2] - line[0]) - 0.5) < 1e-3, "both axes have the same scale"


def test_noise_undo_and_returning_to_a_setting(driver, given):
    page = Page(driver).open("#part=noise&thrown=30")
    seen = page.text("noise-words")
    preset(page, "64").click()
    assert page.text("noise-words") == "Nothing is thrown with 64 items yet." and dots(page) == {"8"}
    page.find("#undo").click()
    assert page.text("noise-words") == seen
    page.find("#redo").click()
    preset(page, "8").click()
    assert page.text("noise-words") == seen, "a setting keeps its throws"
    page.put("#noise-seed", "7")
    assert thrown(page) == 0 and dots(page) == set(), "another seed has other items"
    page.find("#undo").click()
    assert page.text("noise-words") == seen and dots(page) == {"8"}
    page.find("#restart-noise").click()
    assert thrown(page) == 0 and dots(page) == set()
    page.find("#undo").click()
    assert page.text("noise-words") == seen


def test_noise_bad_numbers_are_reported_next_to_their_field(driver, given):
    page = Page(driver).open("#part=noise&thrown=20")
    before = page.text("noise-words")
    for name, bad, least, most in (("size", ("0", "513", "1.5"), 1, 512), ("count", ("0", "65", "1/2"), 1, 64),
                                   ("seed", ("-1", "1000001"), 0, 1000000)):
        for words in (*bad, "x", ""):
            page.put(f"#noise-{name}", words)
            complaint = page.find(f"#noise-{name}-complaint")
            assert complaint.is_displayed() and page.find(f"#noise-{name}").get_attribute("aria-invalid") == "true", words
            assert words == "x" or str(most) in complaint.text and str(least) in complaint.text, complaint.text
            assert page.text("noise-words") == before, f"{name}: {words!r} must keep the old value"
        page.put(f"#noise-{name}", str(noise(page)[name]))
        assert page.find(f"#noise-{name}-complaint").text == ""
    page.put("#noise-size", "x")
    preset(page, "64").click()
    assert page.find("#noise-size").get_attribute("value") == "64", "a choice replaces a bad number"
    assert page.find("#noise-size-complaint").text == ""


def test_noise_fields_and_sliders(driver, given):
    page = Page(driver).open("#part=noise")
    page.put("#noise-size", "48")
    page.put("#noise-count", "3")
    assert (noise(page)["size"], noise(page)["count"]) == (48, 3)
    page.find("#noise-size-slider").send_keys(Keys.ARROW_RIGHT)
    assert noise(page)["size"] == 128 and page.find("#noise-size").get_attribute("value") == "128"
    assert page.find("#noise-size-slider").get_attribute("aria-valuetext") == "128 items"
    page.find("#noise-count-slider").send_keys(Keys.END)
    assert noise(page)["count"] == 64
    page.find("#noise-size").send_keys(Keys.CONTROL, "a")
    page.find("#noise-size").send_keys("16")
    page.find("#throw").click()
    assert noise(page)["size"] == 16 and thrown(page) == 1, "a number and a click after it both take effect"


def test_noise_the_most_throws_of_a_setting(driver, given):
    page = Page(driver).open("#part=noise&size=16&count=64&thrown=500")
    assert thrown(page) == 15 and dots(page) == {"64 × 16"}
    assert "More throws are not possible" in page.text("noise-words")
    page.find("#throw").click()
    assert thrown(page) == 15


def test_noise_a_link_and_a_code_bring_back_what_was_seen(driver, given):
    page = Page(driver).open("#part=noise")
    page.put("#noise-seed", "11")
    preset(page, "4 × 16").click()
    hold(page, "#throw", 22)
    page.find("#near").click()
    page.find("#law").click()
    look = "return ['plane', 'plot', 'noise-words', 'law-words'].map((id) => document.getElementById(id).outerHTML).join()"
    latest = "return getComputedStyle(document.querySelector('#plane .latest')).visibility"
    soon("the end of the flight", lambda: page.js(latest) == "visible")
    seen = page.js(look)
    soon("the link", lambda: "law=1" in driver.current_url)
    link = driver.current_url.split("#")[1]
    assert "found" not in link
    page.open("#" + link)
    assert page.js(look).replace(' aria-busy="false"', "") == seen.replace(' aria-busy="false"', "")
    code = page.find("#code").get_attribute("value")
    assert code == "N 16 4"
    page.open("#part=noise")
    page.put("#code", code)
    assert (noise(page)["size"], noise(page)["count"], thrown(page)) == (16, 4, 0)


def test_noise_by_keys_alone(driver, given):
    page = Page(driver).open("#part=noise")
    page.find("#throw").send_keys(Keys.ENTER)
    names = []
    for _ in range(8):
        page.press(Keys.TAB)
        names.append(page.js("const e = document.activeElement; return e.getAttribute('aria-label') || e.textContent"))
    assert names == ["b, as a power of two", "b, items in a micro-batch", "N, as a power of two", "N, micro-batches in a throw", "8",
                     "Seed", "Start again", "Zoom in ×10"], names
    preset(page, "8").send_keys(Keys.ARROW_RIGHT)
    assert noise(page)["size"] == 64 and page.js("return document.activeElement.textContent") == "64"
    page.find("#near").send_keys(Keys.SPACE)
    assert noise(page)["near"] == 1 and thrown(page) == 0


def test_noise_is_one_screen_and_never_sideways(driver, given):
    try:
        for width, height in ((1280, 720), (1366, 768), (1920, 1080)):
            sized(driver, width, height)
            for link in ("#part=noise", "#part=noise&size=1&thrown=300", "#part=noise&size=4&count=16&thrown=62&law=1"):
                page = Page(driver).open(link)
                page.js("tally.change({ noise: { found: [[8, 1, 40, 1.7], [64, 1, 40, 0.5], [16, 4, 40, 0.6], [512, 1, 40, 0.2]] } })")
                assert page.js("return document.documentElement.scrollHeight") <= height, (width, link)
                for selector in ("#noise-lead", "#throw", "#plane", "#noise-words", "#plot", "#law-words"):
                    box = page.js("return document.querySelector(arguments[0]).getBoundingClientRect().toJSON()", selector)
                    assert 0 <= box["top"] < box["bottom"] <= height, (width, link, selector, box)
        for width in (320, 360, 768, 1024):
            sized(driver, width, 740)
            page = Page(driver).open("#part=noise&size=4&count=16&thrown=62&law=1")
            assert page.js("return document.documentElement.scrollWidth") <= width
            if width < 560:
                small = page.js("""return [...document.querySelectorAll('#noise button, #noise input')]
                    .map((e) => e.getBoundingClientRect()).filter((box) => box.width && (box.width < 44 || box.height < 44)).length""")
                assert small == 0, f"{small} targets are smaller than 44 pixels"
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
