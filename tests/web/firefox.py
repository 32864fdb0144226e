"""Lets Selenium drive Firefox through WebDriver BiDi, because Debian has no geckodriver."""
import atexit
import itertools
import json
import pathlib
import subprocess
import tempfile

import websocket
from browser import soon
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.command import Command

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key of an element's name in WebDriver's answers
MODIFIERS = {Keys.CONTROL, Keys.SHIFT, Keys.ALT, Keys.META}


def to_bidi(value):
    if isinstance(value, dict) and ELEMENT in value:
        return {"sharedId": value[ELEMENT]}
    if value is None:
        return {"type": "null"}
    if isinstance(value, bool):
        return {"type": "boolean", "value": value}
    if isinstance(value, (int, float)):
        return {"type": "number", "value": value}
    if isinstance(value, str):
        return {"type": "string", "value": value}
    if isinstance(value, (list, tuple)):
        return {"type": "array", "value": [to_bidi(one) for one in value]}
    return {"type": "object", "value": [[key, to_bidi(one)] for key, one in value.items()]}


def from_bidi(answer):
    kind, value = answer["type"], answer.get("value")
    if kind in ("undefined", "null"):
        return None
    if kind == "node":
        return {ELEMENT: answer["sharedId"]}
    if kind in ("array", "nodelist", "htmlcollection"):
        return [from_bidi(one) for one in value]
    if kind == "object":
        return {key: from_bidi(one) for key, one in value}
    return float(value) if kind == "number" and isinstance(value, str) else value  # "NaN", "-0", "Infinity"


class Connection:
    """Answers the commands of Selenium's Remote driver."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen(["firefox-esr", "--headless", "--profile", self.folder.name, "--remote-debugging-port", "0"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        atexit.register(self.process.kill)
        address = pathlib.Path(self.folder.name) / "WebDriverBiDiServer.json"
        soon("Firefox", lambda: address.exists() and address.read_text(encoding="utf-8").endswith("}"))
        at = json.loads(address.read_text(encoding="utf-8"))
        self.socket = websocket.create_connection(f"ws://{at['ws_host']}:{at['ws_port']}/session", suppress_origin=True, timeout=60)
        self.numbers = itertools.count(1)
        self.context = None

    def call(self, method, **given):
        number = next(self.numbers)
        self.socket.send(json.dumps({"id": number, "method": method, "params": given}))
        while (answer := json.loads(self.socket.recv())).get("id") != number:
            pass
        if answer["type"] == "error":
            raise RuntimeError(f"{method}: {answer['error']}: {answer['message']}")
        return answer["result"]

    def script(self, code, *values):
        answer = self.call("script.callFunction", functionDeclaration=f"function() {{ {code} }}", arguments=[to_bidi(one) for one in values],
                           target={"context": self.context}, awaitPromise=True)
        if answer["type"] == "exception":
            raise RuntimeError(answer["exceptionDetails"]["text"])
        return from_bidi(answer["result"])

    def locate(self, given):
        start = {"startNodes": [{"sharedId": given["id"]}]} if "id" in given else {}
        nodes = self.call("browsingContext.locateNodes", context=self.context, locator={"type": "css", "value": given["value"]}, **start)["nodes"]
        return [from_bidi(node) for node in nodes]

    def perform(self, sources):
        for source in sources:
            for action in source["actions"]:
                if isinstance(origin := action.get("origin"), dict):
                    action["origin"] = {"type": "element", "element": to_bidi(origin)}
        self.call("input.performActions", context=self.context, actions=sources)

    def click(self, element):
        self.script("arguments[0].scrollIntoView({ block: 'nearest', behavior: 'instant' })", element)
        moves = [{"type": "pointerMove", "x": 0, "y": 0, "origin": element}, {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self.perform([{"type": "pointer", "id": "mouse", "actions": moves}])

    def send_keys(self, element, keys):
        self.script("const [field] = arguments; if (document.activeElement !== field) { field.focus(); if (field.type === 'text') field.setSelectionRange(1e6, 1e6); }", element)
        actions, held = [], []
        for key in keys:
            actions.append({"type": "keyDown", "value": key})
            if key in MODIFIERS:
                held.append(key)
            else:
                actions.append({"type": "keyUp", "value": key})
        actions += [{"type": "keyUp", "value": key} for key in held]
        self.perform([{"type": "key", "id": "keys", "actions": actions}])

    def execute(self, command, given):
        element = {ELEMENT: given.get("id")}
        if command == Command.NEW_SESSION:
            answer = self.call("session.new", capabilities={})
            self.context = self.call("browsingContext.create", type="window")["context"]
            value = {"sessionId": answer["sessionId"], "capabilities": answer["capabilities"]}
        elif command == Command.GET:
            value = self.call("browsingContext.navigate", context=self.context, url=given["url"], wait="complete") and None
        elif command == Command.W3C_EXECUTE_SCRIPT:
            value = self.script(given["script"], *given["args"])
        elif command == Command.GET_CURRENT_URL:
            value = self.script("return location.href")
        elif command == Command.W3C_GET_ACTIVE_ELEMENT:
            value = self.script("return document.activeElement")
        elif command in (Command.FIND_ELEMENTS, Command.FIND_CHILD_ELEMENTS):
            value = self.locate(given)
        elif command in (Command.FIND_ELEMENT, Command.FIND_CHILD_ELEMENT):
            value = self.locate(given)[0]
        elif command == Command.CLICK_ELEMENT:
            value = self.click(element)
        elif command == Command.SEND_KEYS_TO_ELEMENT:
            value = self.send_keys(element, given["text"])
        elif command == Command.W3C_ACTIONS:
            value = self.perform(given["actions"])
        elif command == Command.GET_ELEMENT_TEXT:
            value = self.script("return (arguments[0].innerText ?? arguments[0].textContent).trim()", element)
        elif command == Command.QUIT:
            value = self.call("browser.close") and None
        else:
            raise NotImplementedError(command)
        return {"value": value}

    def close(self):
        self.process.wait(timeout=30)
        self.folder.cleanup()
