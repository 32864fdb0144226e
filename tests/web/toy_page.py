"""Tests the first screen: cutting, scaling, guessing, playing, numbers, and what moves."""

from browser import ActionChains, By, Keys, Page, messages, soon

FIRST = "[-0.3536 0.0207 -0.6125]"


def toy(page):
    return page.js("return tally.now().toy")


def gap(page, row):
    return page.find(f".gap[aria-label='Gap after row {row}']")


def pull(page, row, rows):
    """Pulls the line after a row down by some rows."""
    knob = gap(page, row).find_element(By.TAG_NAME, "circle")
    step = page.js("const [a, b] = document.querySelectorAll('.gap circle'); return b.getBoundingClientRect().y - a.getBoundingClientRect().y")
    ActionChains(page.driver).click_and_hold(knob).move_by_offset(0, round(step * rows)).release().perform()


def button(page, words):
    return next(one for one in page.all("#toy button") if one.text == words)


def play(page):
    button(page, "Play").click()
    soon("the end of the playback", lambda: page.find("#toy .key").text == "Play" and toy(page)["at"] == len(toy(page)["cuts"]))
    soon("the verdict", lambda: page.text("verdict")[0] in "✓✗RN")


def sized(driver, width, height):
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})


def test_the_first_screen_is_empty_and_fits(driver, given):
    try:
        for width, height in ((1280, 720), (1366, 768), (1920, 1080)):
            sized(driver, width, height)
            page = Page(driver).open()
            assert page.text("verdict").startswith("Cut the batch") and toy(page)["at"] == 0 and toy(page)["cuts"] == [6]
            assert page.js("return document.documentElement.scrollHeight <= innerHeight + 60"), "only the footer is below the screen"
            for selector in ("#verdict", "#toy .stage", "#memory-words", "#toy .key"):
                bottom = page.js("return document.querySelector(arguments[0]).getBoundingClientRect().bottom", selector)
                assert 0 < bottom <= height, f"{selector} ends at {bottom} of {height}"
            assert page.js("return document.documentElement.scrollWidth") <= width
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_three_lines_of_the_toy(driver, given):
    page = Page(driver).open("#part=toy&cuts=2,2,2&at=3")
    shown = page.js("return [...document.querySelectorAll('.stage svg text.strong')].map((e) => e.textContent).join(' ')")
    assert "-1.0608" in shown and "0.0620" in shown and "-1.8375" in shown
    wanted = page.js("return [...document.querySelectorAll('.stage svg text')].map((e) => e.textContent).join(' ')")
    assert "all six -0.3536" in wanted and "all six 0.0207" in wanted and "all six -0.6125" in wanted
    assert "3 times too large" in page.text("verdict")
    button(page, "÷ number of micro-batches").click()
    assert "in every bit" in page.text("verdict") and "same bits" in page.text("bits")
    button(page, "4 + 2").click()
    assert "Wrong direction" in page.text("verdict")
    button(page, "× its share of the rows").click()
    assert "in every bit" in page.text("verdict")


def test_a_cut_is_pulled_by_the_mouse(driver, given):
    page = Page(driver).open()
    pull(page, 1, 0)
    assert toy(page)["cuts"] == [2, 4]
    pull(page, 1, 2)
    assert toy(page)["cuts"] == [4, 2]
    pull(page, 3, 0)
    assert toy(page)["cuts"] == [6], "a click removes a cut"
    for cuts in ([4, 2], [2, 4], [6]):
        page.undo()
        assert toy(page)["cuts"] == cuts, cuts


def test_a_cut_is_moved_by_keys(driver, given):
    page = Page(driver).open()
    gap(page, 1).send_keys(Keys.SPACE)
    assert toy(page)["cuts"] == [2, 4]
    page.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    assert toy(page)["cuts"] == [4, 2]
    assert page.js("return document.activeElement.getAttribute('aria-valuetext')") == "cut here: 4 + 2"
    page.press(Keys.ENTER)
    assert toy(page)["cuts"] == [6]


def test_the_guess_comes_before_the_answer(driver, given):
    page = Page(driver).open()
    button(page, "2 + 2 + 2").click()
    words = page.js("return document.querySelector('.stage svg').textContent")
    assert "together" not in words and "1/2" not in words and "1.0608" not in words, "the picture does not show the answer"
    button(page, "×2").click()
    play(page)
    said = page.text("verdict")
    assert said.startswith("No: you guessed ×2.") and "mean() has divided" in said and "3 times too large" in said
    page.find("#reset-toy").click()
    button(page, "2 + 2 + 2").click()
    button(page, "×3").click()
    play(page)
    assert page.text("verdict").startswith("Right: you guessed ×3.")


def test_a_guess_is_drawn_with_the_mouse(driver, given):
    page = Page(driver).open("#part=toy&cuts=2,2,2")
    line, zero = page.js("""const box = (one) => one.getBoundingClientRect();
        return [box(document.querySelector('.stage .full')).y, box(document.querySelector('.stage .zero')).y]""")
    grip = page.find(".stage .grip")
    middle = page.js("const box = arguments[0].getBoundingClientRect(); return box.y + box.height / 2", grip)
    ActionChains(driver).move_to_element_with_offset(grip, 0, round(line - middle)).click_and_hold().move_by_offset(0, round(line - zero)).release().perform()
    assert toy(page)["guess"] == 2, toy(page)


def test_a_change_of_the_scaling_moves_nothing_else(driver, given):
    page = Page(driver).open("#part=toy&cuts=4,2&at=2")
    places = """return [...document.querySelectorAll('.stage .micro rect, .stage .gap circle, .cells input, .stage .bracket, .stage .full')]
        .map((one) => { const { x, y, width, height } = one.getBoundingClientRect(); return [x, y, width, height].map(Math.round).join(' '); })"""
    page.js("document.documentElement.style.setProperty('scroll-behavior', 'auto')")
    before = page.js(places)
    for words in ("÷ number of micro-batches", "× its share of the rows", "not scaled"):
        button(page, words).click()
        assert page.js(places) == before
        soon("the ribbons", lambda: page.js("return document.getAnimations().every((one) => one.playState !== 'running')"))
    assert page.js(places) == before


def test_play_scrubs_in_both_directions(driver, given):
    page = Page(driver).open("#part=toy&cuts=2,2,2&divide=1")
    time = page.find("#toy input[type=range]")
    seen = []
    for key in (Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_LEFT, Keys.ARROW_LEFT, Keys.ARROW_LEFT):
        time.send_keys(key)
        seen.append(toy(page)["at"])
    assert seen == [1, 2, 3, 2, 1, 0]


def test_every_part_of_the_screen_changes(driver, given):
    page = Page(driver).open("#part=toy&cuts=6&at=1")
    def numbers():
        return page.js("return [...document.querySelectorAll('.stage svg text, #memory-words')].filter((e) => /\\d/.test(e.textContent)"
                       " && e.checkVisibility({ visibilityProperty: true })).map((e) => e.textContent)")
    first = numbers()
    seen = [set() for _ in first]
    for link in ("#part=toy&cuts=6&at=1", "#part=toy&cuts=2,2,2&at=3", "#part=toy&cuts=4,2&divide=1&at=2",
                 "#part=toy&cuts=2,2,2&at=3&x=" + ",".join(map(str, range(1, 19)))):
        page.open(link)
        now = page.js("return [document.querySelector('#memory-words').textContent, ...[...document.querySelectorAll('.stage svg text:not(.label)')].map((e) => e.textContent)]")
        for i, words in enumerate(now):
            seen.append(set()) if i >= len(seen) else None
            seen[i].add(words)
    changing = [one for one in seen if any(any(c.isdigit() for c in words) for words in one)]
    assert all(len(one) > 1 for one in changing if one != {"1"}), [one for one in changing if len(one) == 1]


# ---- numbers ----

def test_a_click_after_typing_is_not_lost(driver, given):
    page = Page(driver).open("#part=toy&cuts=2,2,2&at=3")
    for i, (words, what, wanted) in enumerate((("÷ number of micro-batches", "divide", 1), ("4 + 2", "cuts", [4, 2]), ("3 + 3", "cuts", [3, 3]), ("not scaled", "divide", 0))):
        field = page.find("#x0")
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(str(2 + i))
        button(page, words).click()
        assert toy(page)["x"][0] == 2 + i and toy(page)[what] == wanted, words
    field = page.find("#x0")
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys("7")
    gap(page, 0).find_element(By.TAG_NAME, "rect").click()
    assert toy(page)["x"][0] == 7 and toy(page)["cuts"] == [1, 2, 3]
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys("8", Keys.TAB)
    assert page.js("return document.activeElement.id") == "x1" and toy(page)["x"][0] == 8
    page.hold(Keys.SHIFT, Keys.TAB)
    assert page.js("return document.activeElement.id") == "x0"


def test_typing_while_playing_keeps_field_and_text(driver, given):
    page = Page(driver).open("#part=toy&cuts=1,1,1,1,1,1")
    button(page, "Play").click()
    field = page.find("#x4")
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys("-11.1")
    soon("three micro-batches", lambda: toy(page)["at"] >= 3)
    field.send_keys("25")
    assert field.get_attribute("value") == "-11.125" and page.js("return document.activeElement.id") == "x4"
    assert toy(page)["x"] is None, "a number that is being typed is not taken"
    field.send_keys(Keys.TAB)
    assert toy(page)["x"][4] == -11.125


def test_numbers_as_people_write_them(driver, given):
    page = Page(driver).open("#part=toy&cuts=2,2,2&at=3")
    for words, value in (("1/4", 0.25), ("0,5", 0.5), ("−3", -3), ("2^3", 8)):
        page.put("#x0", words)
        assert toy(page)["x"][0] == value, words
    before = page.text("verdict")
    for words, complaint in (("abc", "“abc” is not a number"), ("1e39", "too large for 32 bits"), ("", "type a number")):
        page.put("#x0", words)
        assert complaint in page.text("x0-complaint") and page.find("#x0").get_attribute("aria-describedby") == "x0-complaint"
        assert toy(page)["x"][0] == 8 and page.text("verdict") == before
    page.put("#x0", "1")
    assert not page.find("#x0-complaint").text and toy(page)["x"][0] == 1


def test_a_number_is_pulled_by_the_mouse(driver, given):
    page = Page(driver).open("#part=toy&cuts=2,2,2&at=3")
    was = toy(page)["x"]
    field = page.find("#x0")
    ActionChains(driver).click_and_hold(field).move_by_offset(10, 0).move_by_offset(26, 0).release().perform()
    assert toy(page)["x"][0] == 0.375 + 3 / 8 and field.get_attribute("value") == "0.75", toy(page)["x"]
    assert page.js("return document.activeElement.id") != "x0"
    page.undo()
    assert toy(page)["x"] == was, "one pull is one step of undo"
    field.click()
    page.press("2", Keys.TAB)
    assert toy(page)["x"][0] == 2, "a click selects the number"


def test_undo_stops_a_playback(driver, given):
    page = Page(driver).open("#part=toy&cuts=1,1,1,1,1,1&at=6")
    page.find("#toy .key").click()
    soon("two micro-batches", lambda: toy(page)["at"] == 2)
    page.undo()
    assert toy(page)["at"] == 6 and page.find("#toy .key").text == "Play"


def test_a_paused_playback_goes_on(driver, given):
    page = Page(driver).open("#part=toy&cuts=1,1,1,1,1,1")
    page.find("#toy .key").click()
    soon("three micro-batches", lambda: toy(page)["at"] == 3)
    page.find("#toy .key").click()
    page.find("#toy .key").click()
    assert toy(page)["at"] == 4


def test_a_guess_belongs_to_one_setting(driver, given):
    page = Page(driver).open("#part=toy&cuts=2,2,2")
    button(page, "×3").click()
    play(page)
    button(page, "÷ number of micro-batches").click()
    assert "guessed" not in page.text("verdict") and toy(page)["guess"] is None


def test_equal_rows_do_not_hide_unequal_weights(driver, given):
    page = Page(driver).open("#part=toy&cuts=4,2&divide=1&at=2&x=" + ",".join(["1"] * 18))
    assert "by chance" in page.text("verdict")
    button(page, "not scaled").click()
    assert "Every row counts 1/4 or 1/2 instead of 1/6" in page.text("verdict")


def test_a_cut_is_pushed_away(driver, given):
    page = Page(driver).open("#part=toy&cuts=2,4")
    knob = gap(page, 1).find_element(By.TAG_NAME, "circle")
    ActionChains(driver).click_and_hold(knob).move_by_offset(0, -60).move_by_offset(0, -160).release().perform()
    assert toy(page)["cuts"] == [6], toy(page)["cuts"]


def test_two_scalings_are_compared(driver, given):
    page = Page(driver).open("#part=toy&cuts=2,2,2&at=3&compare=1")
    assert "more than 100 with not scaled" in page.text("race-words") and "0.01 with ÷ N" in page.text("race-words")
    assert len({page.js("return arguments[0].getAttribute('d')", path) for path in page.all(".track .path")}) == 2, "÷ N follows all six rows"
    assert "Filled: not scaled. Dotted: ÷ N." in page.find(".stage").text
    assert [one.text for one in page.all("#toy .more .choice button") if not one.is_enabled()] == ["not scaled"]
    button(page, "÷ number of micro-batches").click()
    assert page.find("#memory-words").is_displayed() and not page.find("#race-words").is_displayed(), "a scaling is not compared with itself"
    page.all("#toy .bar .choice")[1].find_element(By.TAG_NAME, "button").click()
    assert page.find("#race-words").is_displayed()


def test_overflow_is_called_overflow(driver, given):
    messages(driver)
    page = Page(driver).open("#part=toy&cuts=2,2,2&at=3&x=" + ",".join(["3e38"] * 18))
    assert "too large for 32 bits" in page.text("verdict") and not messages(driver)


def test_a_link_brings_back_what_was_seen(driver, given):
    page = Page(driver).open("#part=toy&cuts=1,5&divide=2&at=2")
    page.put("#x10", "0.75")
    soon("the link", lambda: "x=" in driver.current_url)
    link, seen = driver.current_url.split("#")[1], page.js("return document.querySelector('.stage svg').textContent") + page.text("verdict")
    page.open("#" + link)
    assert page.js("return document.querySelector('.stage svg').textContent") + page.text("verdict") == seen


def test_a_phone_shows_everything_upright(driver, given):
    try:
        sized(driver, 360, 740)
        page = Page(driver).open("#part=toy&cuts=2,2,2&divide=1&at=3")
        assert page.js("return document.documentElement.scrollWidth") <= 360
        small = page.js("""return [...document.querySelectorAll('#toy button, #toy input:not([type=range]), .gap rect')]
            .filter((e) => e.checkVisibility()).map((e) => [e.id || e.textContent || 'gap', e.getBoundingClientRect()])
            .filter(([, box]) => Math.min(box.width, box.height) < 43.5).map(([name, box]) => `${name} ${box.width} x ${box.height}`)""")
        assert not small, small
        assert page.find(".stage").get_attribute("class") == "stage tall"
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
