"""The page in a real browser: on a phone and a desk, light and dark."""

import html
import importlib.util
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from boxwright.lab.programs import can_be_root, program
from boxwright.page.page import page

spec = importlib.util.spec_from_file_location("boxes", Path(__file__).with_name("boxes.py"))
boxes = importlib.util.module_from_spec(spec)
spec.loader.exec_module(boxes)

WIDTHS = (360, 1200)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--virtual-time-budget=5000",
)  # fmt: skip
#: Measures each frame: what is wider than it, what text has too little contrast, and what was fetched.
MEASURE = """
const lum = c => {
  const f = c.map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
  return .2126 * f[0] + .7152 * f[1] + .0722 * f[2] };
const parse = t => {
  const m = t.match(/[\\d.]+/g).map(Number);
  return { rgb: m.slice(0, 3), a: m[3] === undefined ? 1 : m[3] } };
addEventListener('load', () => {
  const found = [...document.querySelectorAll('iframe')].map(frame => {
    const doc = frame.contentDocument, win = frame.contentWindow, root = doc.documentElement;
    const ground = el => {
      for (; el; el = el.parentElement) {
        const c = parse(win.getComputedStyle(el).backgroundColor);
        if (c.a === 1) return c.rgb }
      return [255, 255, 255] };
    const faint = [], small = [], wide = [];
    let least = 99;
    for (const el of doc.body.querySelectorAll('*')) {
      const box = el.getBoundingClientRect();
      if (box.right > root.clientWidth + .5) wide.push(el.tagName + ' ' + el.textContent.slice(0, 40));
      const own = [...el.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
      if (!own || el.tagName === 'title') continue;
      const style = win.getComputedStyle(el), svg = el instanceof win.SVGElement;
      const a = lum(parse(svg ? style.fill : style.color).rgb), b = lum(ground(el));
      const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
      least = Math.min(least, ratio);
      if (ratio < 4.5) faint.push(ratio.toFixed(2) + ' ' + el.textContent.slice(0, 40));
      const drawing = svg && el.ownerSVGElement;
      const scale = svg ? drawing.getBoundingClientRect().width / drawing.viewBox.baseVal.width : 1;
      if (parseFloat(style.fontSize) * scale < 9.5) small.push(el.textContent.slice(0, 40));
    }
    return { width: root.clientWidth, scroll: root.scrollWidth, faint, small, wide, least,
      ground: ground(doc.body), fetched: win.performance.getEntriesByType('resource').map(e => e.name),
      full: [...doc.querySelectorAll('.meter .full')].map(e => e.getBoundingClientRect().width) };
  });
  document.body.innerHTML = '<pre id=found></pre>';
  document.getElementById('found').textContent = JSON.stringify(found);
});
"""


@pytest.fixture(scope="module")
def chromium():
    """The browser; Debian's is installed where there is none and one may."""
    if known := shutil.which("chromium") or shutil.which("chromium-browser"):
        return known
    if not (shutil.which("apt-get") and can_be_root()):
        pytest.skip("there is no Chromium, and it cannot be installed without root and apt")
    return program("chromium", "chromium", print, "the page is looked at in a real browser")


@pytest.fixture(scope="module")
def measured(chromium, tmp_path_factory):
    """Scheme -> width -> what the browser found."""
    text = page(boxes.box())

    def look(scheme):
        place = tmp_path_factory.mktemp(scheme)
        frames = "".join(
            f'<iframe width="{width}" height="800" frameborder="0" srcdoc="{html.escape(text)}"></iframe>'
            for width in WIDTHS
        )
        file = place / "frames.html"
        file.write_text(
            f'<!doctype html><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
            f"<script>{MEASURE}</script><body>{frames}</body>"
        )
        done = subprocess.run(
            [chromium, *FLAGS, f"--user-data-dir={place / 'profile'}", "--window-size=1400,1000",
             f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}",
             "--dump-dom", file.as_uri()],
            capture_output=True, text=True, check=False, timeout=180,
        )  # fmt: skip
        said = re.search(r'<pre id="found">(.*)</pre>', done.stdout, re.DOTALL)
        assert said, done.stdout[-2000:] + done.stderr[-2000:]
        return {one["width"]: one for one in json.loads(html.unescape(said[1]))}

    return {scheme: look(scheme) for scheme in ("light", "dark")}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_it_fits_is_legible_and_fetches_nothing(measured, scheme, width):
    found = measured[scheme][width]
    assert found["scroll"] <= width
    assert found["wide"] == []
    assert found["faint"] == []
    assert found["small"] == []
    assert found["fetched"] == []
    assert max(found["full"]) > 20


def test_light_is_light_and_dark_is_dark(measured):
    assert min(measured["light"][360]["ground"]) > 200
    assert max(measured["dark"][360]["ground"]) < 60
