#!/usr/bin/env python3
"""Checks a report.html in headless Chromium over the DevTools pipe. Standard library only; see check-report.sh."""

import argparse
import base64
import json
import os
import pathlib
import select
import subprocess
import sys
import time

FIGURES = [
    "fig-errors", "fig-order-reads", "fig-order-writes", "fig-setup", "fig-transfer", "fig-parallel", "fig-affine", "fig-latency",
    "fig-depth", "fig-mix", "fig-request-size", "fig-location", "fig-interface", "fig-sequential", "fig-flush", "fig-sustain",
    "fig-verification", "fig-store",
]
WINDOWS = {"wide": (1600, 1000), "middle": (900, 1000), "narrow": (400, 850), "narrowest": (360, 740)}
TIMEOUT_S = 60

# Runs in the page; returns the list of what is wrong.
CHECK = r"""
(async ({figures, allowAbsent}) => {
  const problems = [];
  const say = (words) => problems.push(words);
  const shown = (element) => { const box = element.getBoundingClientRect(); return box.width > 1 && box.height > 1; };
  // The module of the what-if section compiles while the page is shown.
  const live = document.getElementById("what-if-live");
  const absent = document.getElementById("what-if-absent");
  for (let waited = 0; live?.hidden && absent.hidden && waited < 500; waited++) { await new Promise((go) => setTimeout(go, 20)); }
  const where = (element) => element.closest("figure, section, header")?.id ?? element.tagName;

  if (document.scrollingElement.scrollWidth > innerWidth) {
    say(`the page is ${document.scrollingElement.scrollWidth} px wide in a window of ${innerWidth} px`);
  }
  for (const id of figures) {
    const figure = document.getElementById(id);
    if (!figure) { if (!allowAbsent) { say(`${id} is missing`); } continue; }
    const drawings = [...figure.querySelectorAll(".panels > svg")];
    if (!drawings.length || !drawings.every(shown)) { say(`${id} has no drawing of any size`); }
    if (!figure.querySelector("figcaption")?.textContent.trim()) { say(`${id} has no caption`); }
    for (const drawing of drawings) {
      if (drawing.getAttribute("role") !== "img" || !drawing.getAttribute("aria-label")) { say(`${id} says nothing to a screen reader`); }
      if (!drawing.querySelector("circle, rect, path[data-s]")) { say(`${id} has an empty drawing`); }
    }
  }
  for (const section of document.querySelectorAll("main > section")) {
    if (![...section.querySelectorAll("figure, table, p")].some(shown)) { say(`section ${section.id} is empty`); }
  }

  // Labels of a drawing: inside it, apart from each other, large enough to read.
  for (const drawing of document.querySelectorAll(".panels > svg")) {
    const frame = drawing.getBoundingClientRect();
    const labels = [...drawing.querySelectorAll("text")].map((text) => [text, text.getBoundingClientRect()]);
    for (const [text, box] of labels) {
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1) {
        say(`${where(text)}: "${text.textContent}" is cut`);
      }
      const pixels = parseFloat(getComputedStyle(text).fontSize) * frame.width / drawing.viewBox.baseVal.width;
      if (pixels < 9) { say(`${where(text)}: "${text.textContent}" is ${pixels.toFixed(1)} px high`); }
    }
    labels.forEach(([a, one], index) => {
      for (const [b, two] of labels.slice(index + 1)) {
        const across = Math.min(one.right, two.right) - Math.max(one.left, two.left);
        const along = Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top);
        if (across > 1 && along > 3) { say(`${where(a)}: "${a.textContent}" overlaps "${b.textContent}"`); }
      }
    });
  }

  // What the script adds: tooltips for the nearest mark, highlighting from the legend, the theme switch.
  const tip = document.getElementById("tip");
  const mark = document.querySelector(".panels > svg circle");
  if (mark) {
    const box = mark.getBoundingClientRect();
    const svg = mark.closest(".panels > svg");
    const at = { clientX: box.left + 4, clientY: box.top + 4, bubbles: true };
    svg.dispatchEvent(new PointerEvent("pointermove", at));
    if (tip.hidden || !tip.textContent) { say("no tooltip over a mark"); }
    svg.dispatchEvent(new PointerEvent("pointerleave", at));
    if (!tip.hidden) { say("the tooltip stays"); }
  }
  const key = document.querySelector(".legend [data-s]");
  if (key) {
    key.dispatchEvent(new PointerEvent("pointerenter"));
    const panels = key.closest("figure").querySelector(".panels");
    if (!panels.classList.contains("dimmed") || !panels.querySelector(".lit")) { say("the legend highlights nothing"); }
    key.dispatchEvent(new PointerEvent("pointerleave"));
    if (panels.classList.contains("dimmed")) { say("the highlighting stays"); }
  }
  // The what-if section: a slider changes the ranking, and the button takes that back.
  if (live) {
    const ranking = () => document.querySelector("#what-if tbody").textContent;
    const before = ranking();
    for (const slider of live.querySelectorAll("input")) {
      const was = slider.value;
      if (slider.type === "checkbox") { slider.checked = !slider.checked; } else { slider.value = slider.max; }
      slider.dispatchEvent(new Event("input", { bubbles: true }));
      if (ranking() === before) { say(`what-if: "${slider.parentNode.textContent}" changes nothing`); }
      live.querySelector("button").click();
      if (ranking() !== before) { say(`what-if: "${slider.parentNode.textContent}" is not taken back from ${was}`); }
    }
    if (!shown(live) || live.querySelectorAll(".panels path[data-s]").length < 2) { say("what-if: no chart"); }
  }
  const button = document.getElementById("theme");
  const paper = () => getComputedStyle(document.body).backgroundColor;
  const papers = [0, 1, 2].map(() => { button.click(); return paper(); });
  if (!shown(button) || papers[0] === papers[1]) { say("the theme switch does nothing"); }

  // Contrast of every text against what it stands on (WCAG 2: 4.5, and 3 for what is large).
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const channels = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return canvas.getImageData(0, 0, 1, 1).data;
  };
  const luminance = (colour) => {
    const [r, g, b] = [...channels(colour)].map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => { const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if (channels(colour)[3] > 250) { return colour; }
    }
    return "white";
  };
  const pale = new Set();
  for (const element of document.querySelectorAll("body *")) {
    if (!element.checkVisibility() || ![...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim())) { continue; }
    const style = getComputedStyle(element);
    const drawn = element.tagName === "text";
    const cell = drawn && element.parentNode.querySelector(":scope > rect");
    const ground = element.classList.contains("in-cell") && cell ? getComputedStyle(cell).fill : behind(element);
    const ratio = contrast(drawn ? style.fill : style.color, ground);
    if (ratio < (parseFloat(style.fontSize) > 23 ? 3 : 4.5)) {
      pale.add(`${where(element)}: .${element.classList[0] ?? element.tagName} has contrast ${ratio.toFixed(1)} ("${element.textContent.trim().slice(0, 30)}")`);
    }
  }
  for (const drawn of document.querySelectorAll(".panels [data-s], .legend i")) {
    const ratio = contrast(getComputedStyle(drawn).color, behind(drawn.parentElement));
    if (ratio < 2.4) { pale.add(`${where(drawn)}: series ${drawn.dataset.s ?? ""} has contrast ${ratio.toFixed(1)}`); }
  }
  return problems.concat([...pale]);
})
"""


class Browser:
    """Chromium behind a pair of pipes: JSON messages that end with a zero byte."""

    def __init__(self, path, user_data):
        self.to_browser_read, self.to_browser = os.pipe()
        self.from_browser, self.from_browser_write = os.pipe()
        flags = [
            "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
            "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars",
            "--force-color-profile=srgb", f"--user-data-dir={user_data}", "--remote-debugging-pipe", "about:blank",
        ]

        def place_pipes():
            # DevTools reads descriptor 3 and writes descriptor 4. Moving up first keeps either from overwriting the other.
            read, write = os.dup(self.to_browser_read), os.dup(self.from_browser_write)
            high_read, high_write = 100, 101
            os.dup2(read, high_read)
            os.dup2(write, high_write)
            os.dup2(high_read, 3)
            os.dup2(high_write, 4)

        self.process = subprocess.Popen(
            [path, *flags], preexec_fn=place_pipes, close_fds=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        os.close(self.to_browser_read)
        os.close(self.from_browser_write)
        self.last_id = 0
        self.buffer = b""
        self.events = []

    def receive(self, deadline):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.from_browser], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError(f"Chromium did not answer within {TIMEOUT_S} s")
            chunk = os.read(self.from_browser, 1 << 20)
            if not chunk:
                raise RuntimeError(f"Chromium ended (exit code {self.process.poll()})")
            self.buffer += chunk
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, **params):
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        self.write(message)
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            answer = self.receive(deadline)
            if answer.get("id") == self.last_id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def write(self, message):
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to_browser, data):]

    def wait_for(self, method):
        deadline = time.monotonic() + TIMEOUT_S
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self.receive(deadline))

    def close(self):
        try:
            self.call("Browser.close")
        except (RuntimeError, TimeoutError, OSError):
            self.process.terminate()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def problems_of_events(events, url):
    """What the page told the console or asked the network for."""
    problems = []
    for event in events:
        params = event.get("params", {})
        match event.get("method"):
            case "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                problems.append("exception: " + details.get("exception", {}).get("description", details["text"]))
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning", "assert"):
                problems.append("console: " + " ".join(str(a.get("value", a.get("description"))) for a in params["args"]))
            case "Log.entryAdded" if params["entry"]["level"] in ("error", "warning"):
                problems.append("log: " + params["entry"]["text"])
            case "Network.requestWillBeSent":
                requested = params["request"]["url"]
                if requested != url and not requested.startswith("data:"):
                    problems.append("request: " + requested)
    return problems


def check(browser, url, window, size, scheme, arguments):
    """Opens the page once and returns what is wrong with it there."""
    target = browser.call("Target.createTarget", url="about:blank")["targetId"]
    session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    for domain in ("Page", "Runtime", "Log", "Network"):
        browser.call(f"{domain}.enable", session)
    width, height = size
    browser.call("Emulation.setDeviceMetricsOverride", session, width=width, height=height, deviceScaleFactor=1, mobile=False)
    browser.call("Emulation.setEmulatedMedia", session, features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.events.clear()
    browser.call("Page.navigate", session, url=url)
    browser.wait_for("Page.loadEventFired")
    options = json.dumps({"figures": FIGURES, "allowAbsent": arguments.allow_absent})
    result = browser.call("Runtime.evaluate", session, expression=f"{CHECK}({options})", returnByValue=True, awaitPromise=True)
    if "exceptionDetails" in result:
        raise RuntimeError("the check itself failed: " + json.dumps(result["exceptionDetails"])[:600])
    found = problems_of_events(browser.events, url) + result["result"]["value"]
    if arguments.screenshots:
        screenshots(browser, session, pathlib.Path(arguments.screenshots), f"{window}-{scheme}")
    browser.call("Target.closeTarget", targetId=target)
    return [f"{window} {scheme}: {problem}" for problem in found]


def ranking(browser, url, before):
    """What the what-if section shows at first, if `before` runs ahead of the page's scripts: reason and designs."""
    target = browser.call("Target.createTarget", url="about:blank")["targetId"]
    session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    browser.call("Page.enable", session)
    browser.call("Page.addScriptToEvaluateOnNewDocument", session, source=before)
    browser.events.clear()
    browser.call("Page.navigate", session, url=url)
    browser.wait_for("Page.loadEventFired")
    expression = """(async () => {
        const [live, absent] = ["what-if-live", "what-if-absent"].map((id) => document.getElementById(id));
        for (let waited = 0; live?.hidden && absent.hidden && waited < 500; waited++) { await new Promise((go) => setTimeout(go, 20)); }
        const designs = [...document.querySelectorAll("#what-if tbody tr")].map((row) => row.cells[0].textContent);
        return { reason: absent?.checkVisibility() ? absent.textContent : "", designs };
    })()"""
    shown = browser.call("Runtime.evaluate", session, expression=expression, returnByValue=True, awaitPromise=True)
    browser.call("Target.closeTarget", targetId=target)
    return shown["result"]["value"]


def check_what_if(browser, url):
    """The ranking at first is that of the table without scripts, which says so where nothing can be varied."""
    live, table = ranking(browser, url, ""), ranking(browser, url, "delete globalThis.WebAssembly")
    problems = []
    if live["designs"] != table["designs"]:
        problems.append(f"what-if: {live['designs']} at first, {table['designs']} without scripts")
    if live["reason"] or (table["designs"] and "WebAssembly" not in table["reason"]):
        problems.append(f"what-if: the reason why nothing can be varied is {live['reason']!r}, without WebAssembly {table['reason']!r}")
    return problems


def screenshots(browser, session, directory, name):
    """The whole page and each of its parts."""
    directory.mkdir(parents=True, exist_ok=True)
    expression = """[["", document.documentElement], ...[...document.querySelectorAll("header, main > section")].map((e) => ["-" + e.id, e])]
        .map(([id, e]) => { const b = e.getBoundingClientRect(); return [id, b.left, b.top + scrollY, b.width, b.height]; })"""
    parts = browser.call("Runtime.evaluate", session, expression=expression, returnByValue=True)["result"]["value"]
    for part, x, y, width, height in parts:
        clip = {"x": x, "y": y, "width": width, "height": height, "scale": 1}
        data = browser.call("Page.captureScreenshot", session, clip=clip, captureBeyondViewport=True)["data"]
        (directory / f"{name}{part}.png").write_bytes(base64.b64decode(data))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--browser", required=True)
    parser.add_argument("--user-data", required=True)
    parser.add_argument("--screenshots")
    parser.add_argument("--allow-absent", action="store_true")
    parser.add_argument("report")
    arguments = parser.parse_args()
    url = pathlib.Path(arguments.report).resolve(strict=True).as_uri()
    browser = Browser(arguments.browser, arguments.user_data)
    problems = []
    try:
        for window, size in WINDOWS.items():
            for scheme in ("light", "dark"):
                problems += check(browser, url, window, size, scheme, arguments)
        problems += check_what_if(browser, url)
    finally:
        browser.close()
    for problem in problems:
        print(problem, file=sys.stderr)
    places = len(WINDOWS) * 2
    print(f"check-report: {len(problems)} problems in {places} combinations of window and colour scheme")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
