"""Drives the page in a browser: opens it from a file, finds and reads elements, presses keys and mouse buttons."""
import atexit
import glob
import importlib.util
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "classroom.html"

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common import utils
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
except ImportError:
    if sys.executable != "/usr/bin/python3" and os.path.exists("/usr/bin/python3"):  # Debian's Python has Debian's packages
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
    print("skipped: no selenium (python3-selenium)")
    sys.exit(77)


PACKAGES = {
    "chromium": "chromium, chromium-driver",
    "firefox": "firefox-esr, python3-websocket",
    "webkit": "webkit2gtk-driver, xvfb",
}


def missing(name):
    """Returns the packages of a browser that this machine lacks, or nothing."""
    programs = {"chromium": ["chromium", "chromedriver"], "firefox": ["firefox-esr"], "webkit": ["WebKitWebDriver", "Xvfb"]}[name]
    found = all(map(shutil.which, programs)) and (name != "firefox" or importlib.util.find_spec("websocket"))
    return "" if found else PACKAGES[name]


def browser(name="chromium"):
    return {"chromium": chromium, "firefox": firefox, "webkit": webkit}[name]()


def chromium():
    options = webdriver.ChromeOptions()
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1024,900", "--host-resolver-rules=MAP * ~NOTFOUND"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)


def firefox():
    from firefox import Connection  # noqa: PLC0415  needs python3-websocket
    return webdriver.Remote(command_executor=Connection(), options=webdriver.FirefoxOptions())


def webkit():
    """Starts the WebKit of GTK, which needs a display, on a virtual one."""
    display, given = os.pipe()
    screen = subprocess.Popen(["Xvfb", "-displayfd", str(given), "-screen", "0", "1280x1024x24"], pass_fds=[given], stderr=subprocess.DEVNULL)
    atexit.register(screen.terminate)
    os.close(given)
    number = os.read(display, 20).decode().strip()
    assert number, "Xvfb does not start"
    os.environ.update(DISPLAY=f":{number}", GDK_BACKEND="x11", WEBKIT_DISABLE_COMPOSITING_MODE="1")
    options = webdriver.WebKitGTKOptions()
    options.binary_location = max(glob.glob("/usr/lib/*/webkit2gtk-4*/MiniBrowser"))
    options.add_argument("--automation")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    service = subprocess.Popen(["WebKitWebDriver", f"--port={port}"])
    atexit.register(service.terminate)
    soon("WebKit's driver", lambda: utils.is_connectable(port))
    return webdriver.Remote(command_executor=f"http://127.0.0.1:{port}", options=options)


def messages(driver):
    """Returns what the console has shown since the last call. Only Chromium's driver can; the page itself shows uncaught errors in #status."""
    return driver.get_log("browser") if driver.name == "chrome" else []


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


