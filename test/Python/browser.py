"""Pages in headless Chromium."""

import html.parser
import os
import subprocess


class _Elements(html.parser.HTMLParser):
    """Attributes and text of elements with an id; those of body under "body"."""

    def __init__(self):
        super().__init__()
        self.attributes, self.texts, self._open = {}, {}, []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        name = "body" if tag == "body" else attributes.get("id")
        if name:
            self.attributes[name] = attributes
            self.texts[name] = ""
        if tag not in ("meta", "link", "br", "input", "img"):
            self._open.append((tag, name))

    def handle_endtag(self, tag):
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        for _, name in self._open:
            if name and name != "body":
                self.texts[name] += data


def _run(page, folder, *flags):
    command = ["chromium", "--headless=new", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr",
               f"--user-data-dir={folder}/chromium", *flags, f"file://{page}"]  # fmt: skip
    if os.geteuid() == 0:
        command.insert(1, "--no-sandbox")
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    messages = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert not messages, "\n".join(messages)
    return done.stdout


def read_page(page, folder):
    """The elements of a page once its script has run. Whatever the page says on its console is a failure."""
    elements = _Elements()
    elements.feed(_run(page, folder, "--dump-dom"))
    return elements


def take_picture(page, folder, path, width, height):
    _run(page, folder, f"--window-size={width},{height}", f"--screenshot={path}")
    return path.read_bytes()
