// Uses a page as a person would, and writes what they would see into an element with the id `seen`.
(async () => {
  const byId = (id) => document.getElementById(id);
  const settle = () => new Promise((done) => setTimeout(done, 50));
  const until = async (what, isSo) => {
    for (let tries = 0; tries < 200; tries += 1) {
      if (isSo()) return;
      await settle();
    }
    throw new Error(`never: ${what}`);
  };
  const press = (key) =>
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  const type = (id, text) => {
    byId(id).value = text;
    byId(id).dispatchEvent(new Event("input", { bubbles: true }));
  };
  const isVisible = (node) => {
    const { top, bottom, height } = node.getBoundingClientRect();
    return height > 0 && bottom > 0 && top < innerHeight;
  };
  const shown = () => [...document.querySelectorAll("#groups li .path")].map((node) => node.textContent);
  const status = () => byId("status").textContent;
  for (const folded of document.querySelectorAll("h3 button[aria-expanded=false]")) folded.click();
  const seen = { stacks: shown(), headings: [...document.querySelectorAll("h3")].map((it) => it.textContent) };

  const last = JSON.parse(byId("run").textContent).stacks.at(-1);
  if (last) {
    type("query", "needle");
    await until("the search ends", () => /match|contains/.test(status()));
    seen.found = status();
    seen.foundIn = shown();
    if (!byId("hits").hidden) {
      press("n");
      const current = document.querySelector("li.selected .log .current mark");
      seen.isMatchVisible = current !== null && isVisible(current);
      seen.match = status();
    }
    press("Escape");
    await until("the search is cleared", () => status() === "");

    type("filter", last.path.toUpperCase());
    seen.filtered = shown();
    document.querySelector("#groups li .row").click();
    type("filter", "");
    // There is no next stack, so it stays selected, and is scrolled to.
    press("j");
    const [selected, ...others] = document.querySelectorAll("li.selected");
    if (others.length > 0) throw new Error("several stacks are selected");
    seen.selected = selected.querySelector(".path").textContent;
    seen.isSelectedVisible = isVisible(selected);
    const link = selected.querySelector(".details .link");
    if (link) {
      link.click();
      seen.jumped = [link.textContent, document.querySelector("li.selected .path").textContent];
    }

    while (document.querySelector("li.selected")) press("Escape");
    seen.steps = ["j", "j", "k"].map((key) => {
      press(key);
      return document.querySelector("li.selected .path").textContent;
    });
  }

  seen.themes = {};
  for (const theme of ["dark", "light"]) {
    while (document.documentElement.dataset.theme !== theme) press("t");
    await settle();
    const { color, backgroundColor } = getComputedStyle(document.body);
    seen.themes[theme] = [color, backgroundColor];
  }
  return seen;
})()
  .catch((error) => ({ error: String(error) }))
  .then((seen) => {
    const result = document.createElement("pre");
    result.id = "seen";
    result.textContent = JSON.stringify(seen);
    document.body.append(result);
  });
