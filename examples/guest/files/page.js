// What the pages do besides links and forms: look while the guest is writing, and follow an evening as it goes on.
(() => {
  "use strict";
  const PAUSE = 500, AGAIN = 1500, MOST = 4, FOLLOW = 1500;

  const form = document.getElementById("ask");
  if (form) {
    const known = document.getElementById("known"), words = document.getElementById("words");
    let timer = 0, asked = 0;
    // Nothing waits for the answer: the form is sent whenever the guest sends it.
    const warm = async (tries) => {
      const mine = ++asked;
      try {
        const answer = await fetch("/warm", { method: "POST", body: new URLSearchParams(new FormData(form)) });
        const found = answer.ok ? (await answer.json()).known : "";
        if (mine !== asked) return;
        known.textContent = found;
        if (!found && tries > 1) timer = setTimeout(warm, AGAIN, tries - 1);
      } catch { /* a look that fails is one that did not happen */ }
    };
    const later = () => { clearTimeout(timer); if (words.value.trim()) timer = setTimeout(warm, PAUSE, MOST); };
    words.addEventListener("input", later);
    document.getElementById("at").addEventListener("input", later);
  }

  const follow = async () => {
    const now = document.getElementById("now");
    if (!now || !("open" in now.dataset)) return;
    const inUse = now.contains(document.activeElement) || document.hidden;
    if (!inUse) {
      try {
        const answer = await fetch(location.href);
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const next = page.getElementById("now");
        if (next && next.textContent.trim() !== now.textContent.trim()) {
          now.replaceWith(document.adoptNode(next));
          // To those who hear the page: the replaced part is not announced, this line is.
          if (document.title !== page.title) document.getElementById("said").textContent = page.title;
          document.title = page.title;
        }
      } catch { /* tried again */ }
    }
    setTimeout(follow, FOLLOW);
  };
  setTimeout(follow, FOLLOW);
})();
