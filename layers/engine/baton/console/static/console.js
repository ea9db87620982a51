// What pages do besides links and forms: times go on, and the part with the id `live` renews itself by htmx.
// It looks less often while nothing changes, and not at all while the page is hidden, paused, or in use.
(() => {
  "use strict";
  const SLOWER = 1.25, SLOWEST = 15000, PAUSED = "baton-paused";
  const away = Number(document.body.dataset.now) - Date.now();
  const units = [[86400000, "d"], [3600000, "h"], [60000, "min"], [1000, "s"]];
  const all = (selector) => [...document.querySelectorAll(selector)];

  // The same words as `span` in rendering.py.
  function span(ms) {
    if (ms < 1000) return `${Math.round(ms)} ms`;
    if (ms < 10000) return `${(ms / 1000).toFixed(1)} s`;
    const parts = [];
    for (const [size, unit] of units) {
      const count = Math.floor(ms / size);
      ms -= count * size;
      if (count && parts.length < 2) parts.push(`${count} ${unit}`);
      else if (parts.length) break;
    }
    return parts.join(" ");
  }

  function tick() {
    if (document.hidden) return;
    const now = Date.now() + away;
    for (const time of all("time[datetime]")) {
      const left = Date.parse(time.dateTime) - now;
      const whole = Math.abs(left) < 10000 ? Math.floor(Math.abs(left) / 1000) * 1000 : Math.abs(left);
      const words = left > 0 ? `in ${span(whole)} ` : whole < 1000 ? "now " : `${span(whole)} ago `;
      if (time.firstChild.nodeValue !== words) time.firstChild.nodeValue = words;
    }
  }
  setInterval(tick, 1000);

  // A graph begins in the middle of its upper edge: what is wider than the screen is shown from there.
  for (const one of all(".drawing")) one.scrollLeft = (one.scrollWidth - one.clientWidth) / 2;

  // The slider of versions says which one it is at, and shows it when it is let go.
  const slider = (event) => event.target.matches(".versions input[type=range]") && event.target;
  document.addEventListener("input", (event) => { if (slider(event)) event.target.form.querySelector("output").value = event.target.value; });
  document.addEventListener("change", (event) => { if (slider(event)) event.target.form.requestSubmit(); });

  const live = document.getElementById("live"), button = document.getElementById("pause");
  const stale = document.getElementById("stale"), said = document.getElementById("said");
  if (!live || !live.dataset.tag || !window.htmx) return;

  // A store that the browser refuses is one that remembers nothing.
  const kept = { get: () => { try { return localStorage.getItem(PAUSED) === "yes"; } catch { return false; } },
    set: (value) => { try { localStorage.setItem(PAUSED, value ? "yes" : "no"); } catch { /* as above */ } } };
  let paused = kept.get(), tag = live.dataset.tag, timer = 0, wait = every();

  function every() { return Number(live.firstElementChild?.dataset.every || live.dataset.every); }
  function show() {
    button.hidden = false;
    button.setAttribute("aria-pressed", String(paused));
    button.title = paused ? "Updates are paused" : "This page renews itself";
  }
  function later() {
    clearTimeout(timer);
    if (!paused && !document.hidden) timer = setTimeout(look, wait);
  }
  function isInUse() {
    const field = document.activeElement, chosen = getSelection();
    return (live.contains(field) && field.matches("input, select, textarea"))
      || (chosen && !chosen.isCollapsed && live.contains(chosen.anchorNode))
      || live.querySelector("input[name=saga]:checked");
  }
  function look() {
    if (isInUse()) later();
    else htmx.trigger(live, "look");
  }
  button.addEventListener("click", () => {
    paused = !paused;
    kept.set(paused);
    show();
    if (paused) clearTimeout(timer);
    else { wait = every(); look(); }
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) clearTimeout(timer);
    else if (!paused) { wait = every(); look(); }
  });

  live.addEventListener("htmx:configRequest", (event) => { event.detail.headers["If-None-Match"] = tag; });
  live.addEventListener("htmx:afterRequest", (event) => {
    const { status } = event.detail.xhr;
    if (status === 200 || status === 304) stale.textContent = "";
    else if (status === 401) { stale.textContent = "Your sign-in has ended. Load the page again to sign in."; return; }
    else stale.textContent = "The last look at this page did not succeed. It is tried again.";
    wait = status === 200 ? every() : Math.min(wait * SLOWER, Math.max(SLOWEST, every()));
    later();
  });

  // What a person has opened, scrolled and focused stays so when the part is renewed.
  const keys = (elements) => {
    const counts = new Map();
    return elements.map((one) => {
      const words = one.getAttribute("href") || (one.querySelector(":scope > summary") || one).textContent.slice(0, 80);
      const name = `${one.closest("[id]").id}|${one.localName}|${words}`;
      counts.set(name, (counts.get(name) || 0) + 1);
      return [`${name}|${counts.get(name)}`, one];
    });
  };
  const focusable = "a, button, summary, [tabindex]";
  let before = null;
  live.addEventListener("htmx:beforeSwap", (event) => {
    tag = event.detail.xhr.getResponseHeader("etag") || tag;
    before = {
      details: new Map(keys(all("#live details")).map(([key, one]) => [key, one.open])),
      scrolled: keys(all("#live .drawing, #live pre")).map(([key, one]) => [key, one.scrollLeft, one.scrollTop]),
      focus: keys(all(`#live :is(${focusable})`)).find(([, one]) => one === document.activeElement)?.[0],
    };
  });
  live.addEventListener("htmx:afterSwap", () => {
    for (const [key, one] of keys(all("#live details"))) one.open = before.details.get(key) ?? one.open;
    const found = new Map(keys(all("#live .drawing, #live pre")));
    for (const [key, x, y] of before.scrolled) found.get(key)?.scrollTo({ left: x, top: y, behavior: "instant" });
    if (before.focus) new Map(keys(all(`#live :is(${focusable})`))).get(before.focus)?.focus({ preventScroll: true });
    tick();
    const words = live.querySelector("[data-said]")?.dataset.said;
    if (words && said.textContent !== words) said.textContent = words;
  });
  show();
  later();
})();
