#!/usr/bin/env python3
"""Opens a page in headless Chromium and presses keys in it, as a user would: a script's own key events are not trusted, and press
no button. Prints JSON: "told", what EXPRESSION is then, and "console", what the page and Chromium said of it meanwhile.

Usage: press_keys.py PAGE PROFILE EXPRESSION SELECTOR KEY...
  SELECTOR  of the element that has the focus before the first key
  KEY       Tab, Enter or Space
"""
import fcntl
import json
import os
import pathlib
import select
import subprocess
import sys

KEYS = {"Tab": {"key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9},
        "Enter": {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"},
        "Space": {"key": " ", "code": "Space", "windowsVirtualKeyCode": 32, "text": " "}}
PATIENCE = 60  # seconds
SAID = {"Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"}


def above_four(descriptor):
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 5)
    os.close(descriptor)
    return moved


class Chromium:
    """Its developer tools speak JSON over descriptors 3 and 4, a zero byte behind each message."""

    def __init__(self, profile):
        questions, self.to = (above_four(end) for end in os.pipe())
        self.answers, answered = (above_four(end) for end in os.pipe())
        os.dup2(questions, 3)
        os.dup2(answered, 4)
        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                   "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"]
        self.process = subprocess.Popen(command, pass_fds=(3, 4), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for end in (3, 4, questions, answered):
            os.close(end)
        self.read, self.number, self.session, self.events = b"", 0, None, []

    def message(self):
        while b"\0" not in self.read:
            if not select.select([self.answers], [], [], PATIENCE)[0]:
                raise RuntimeError(f"Chromium has said nothing for {PATIENCE} seconds")
            piece = os.read(self.answers, 1 << 16)
            if not piece:
                raise RuntimeError("Chromium has ended")
            self.read += piece
        first, self.read = self.read.split(b"\0", 1)
        return json.loads(first)

    def ask(self, method, **parameters):
        self.number += 1
        question = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            question["sessionId"] = self.session
        os.write(self.to, json.dumps(question).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") != self.number:
                self.events.append(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']['message']}")
            else:
                return answer["result"]

    def wait_for(self, event):
        while not any(each.get("method") == event for each in self.events):
            self.events.append(self.message())

    def value_of(self, expression):
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def end(self):
        os.close(self.to)  # it ends with the pipe
        os.close(self.answers)
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def press(browser, page, expression, selector, keys):
    target = browser.ask("Target.createTarget", url="about:blank")["targetId"]
    browser.session = browser.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    for domain in ("Page", "Runtime", "Log"):
        browser.ask(domain + ".enable")
    browser.ask("Page.navigate", url=pathlib.Path(page).resolve().as_uri())
    browser.wait_for("Page.loadEventFired")
    browser.value_of(f"document.querySelector({json.dumps(selector)}).focus()")
    for key in keys:
        browser.ask("Input.dispatchKeyEvent", type="keyDown", **KEYS[key])
        browser.ask("Input.dispatchKeyEvent", type="keyUp", **KEYS[key])
    told = browser.value_of(expression)
    return {"told": told, "console": [each["params"] for each in browser.events if each.get("method") in SAID]}


def main():
    page, profile, expression, selector, *keys = sys.argv[1:]
    browser = Chromium(profile)
    try:
        print(json.dumps(press(browser, page, expression, selector, keys)))
    finally:
        browser.end()


if __name__ == "__main__":
    main()
