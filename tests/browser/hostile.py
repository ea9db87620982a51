"""Hostile text in every field that a user, a tool or a model can fill: HTML, scripts, other directions, emoji, a megabyte.

Each field's text begins with the name of the field, so that a test can say where it has seen it.
"""

from __future__ import annotations

SCRIPT = "<script>window.hacked=1</script>"
REST = (
    '"><img src=x onerror=window.hacked=1></bdi></pre></textarea></title><!--end--><svg onload=window.hacked=1> '
    "' &amp; &#60;b> {{7*7}} \u202etfel ot thgir \u2066\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627 "
    "\u0000\x07\x1b[31m 👩‍👩‍👧🏳️‍🌈 e\u0301\u0301\u0301 javascript:window.hacked=1 data:text/html,<script>window.hacked=1</script>"
)
MEGABYTE = "x" * 1_000_000

TEXTS = r"""
() => [document.body.innerText, ...[...document.querySelectorAll("input, textarea, option")].map(one => one.value || one.text || "")]
"""
# Text that stands in a sentence is apart from it: an element on the way to its line isolates it, or it is alone in a box of text.
WRONG = r"""
() => {
  const found = [], mark = /window\.hacked/;
  if (window.hacked !== undefined) found.push("a script ran");
  found.push(...window.violations);
  for (const one of document.querySelectorAll("main *, header *")) {
    if (one.matches("img:not(.picture)") || ["SCRIPT", "IFRAME", "OBJECT", "EMBED", "STYLE", "LINK", "BASE"].includes(one.tagName)) found.push(`element ${one.tagName}`);
    for (const { name, value } of one.attributes) {
      if (name.startsWith("on") || (["href", "src", "action", "formaction"].includes(name) && !/^(https:|\/|#|\?)/.test(value)))
        found.push(`${one.tagName} ${name}=${value.slice(0, 80)}`);
    }
  }
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const text = walk.currentNode.nodeValue;
    if (/[\u202a-\u202e\u2066-\u2069\u0007\u001b]/.test(text)) found.push(`control character in ${text.slice(0, 60)}`);
    if (!mark.test(text)) continue;
    for (let one = walk.currentNode.parentElement; ; one = one.parentElement) {
      const { display, unicodeBidi } = getComputedStyle(one), isInline = display === "inline";
      if (isInline && unicodeBidi.startsWith("isolate")) break;
      if (isInline || one.ownerSVGElement) continue;
      const isAlone = one.textContent.trim() === text.trim() || ["PRE", "TEXTAREA", "OPTION"].includes(one.tagName);
      if (!isAlone && !one.closest("pre")) found.push(`not apart: ${one.outerHTML.slice(0, 200)}`);
      break;
    }
  }
  const wide = document.documentElement.scrollWidth;
  if (wide > innerWidth) found.push(`${wide} px wide`);
  return found;
}
"""

FIELDS = set[str]()
"""Those that were asked for."""


def hostile(field: str) -> str:
    """What is seen of it on a page begins with `marked(field)`."""
    return f"{marked(field)}{REST}"


def marked(field: str) -> str:
    FIELDS.add(field)
    return f"{field}:{SCRIPT}"


def plain(field: str) -> str:
    """The same for a field that takes no control characters and no comma."""
    return f"{marked(field)}\u05e9\u05dc\u05d5\u05dd 👩‍👩‍👧"


def url(field: str) -> str:
    """The same for an address, which has no space."""
    return f"https://x.test/{marked(field)}'onclick=window.hacked=1"
