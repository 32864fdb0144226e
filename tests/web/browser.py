"""Drives the page in Chromium: opens it from a file, finds and reads elements, presses keys and mouse buttons."""
import os
import pathlib
import shutil
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "classroom.html"

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
        soon("the page", lambda: self.js("return document.documentElement.dataset.ready") == "yes" or self.text("status"))
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

    def hold(self, modifier, key):
        ActionChains(self.driver).key_down(modifier).send_keys(key).key_up(modifier).perform()

    def undo(self):
        self.hold(Keys.CONTROL, "z")

    def put(self, selector, text):
        field = self.find(selector)
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(text or Keys.DELETE)
        field.send_keys(Keys.TAB)


