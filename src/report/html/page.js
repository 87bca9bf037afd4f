// The page: its header, filters, keys and theme.

function startHeader() {
  const began = new Date(run.began);
  const parts = [`Began ${began.toLocaleString()}`];
  if (run.elapsed_ms !== null) parts.push(`took ${duration(run.elapsed_ms)}`);
  if (run.jobs > 1) parts.push(`${run.jobs} at once`);
  byId("when").textContent = parts.join(" · ");
  byId("problems").append(...run.problems.map((problem) => element("p", {}, visible(problem))));
  const list = byId("facts").querySelector("dl");
  for (const [name, value] of [["run", run.id], ...run.facts]) {
    list.append(element("dt", {}, name), element("dd", {}, visible(value)));
  }
}

function startKinds() {
  for (const { kind, all } of groups) {
    const { sign, title } = KINDS[kind];
    const label = `${sign} ${all.length.toLocaleString("en")} ${title}`;
    const chip = element("button", { type: "button", "aria-pressed": "false", "data-kind": kind }, label);
    chip.addEventListener("click", () => {
      const isOn = !filters.kinds.delete(kind);
      if (isOn) filters.kinds.add(kind);
      chip.setAttribute("aria-pressed", String(isOn));
      if (isOn) groups.find((group) => group.kind === kind).isOpen = true;
      filterList();
      report();
    });
    byId("kinds").append(chip);
  }
}

function clearFilters() {
  byId("filter").value = byId("query").value = "";
  filters.words = [];
  filters.kinds.clear();
  for (const chip of byId("kinds").children) chip.setAttribute("aria-pressed", "false");
  search("");
}

function startFilters() {
  let timer;
  byId("filter").addEventListener("input", () => {
    filters.words = byId("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    filterList();
    report();
  });
  byId("query").addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => search(byId("query").value), 250);
  });
  document.querySelector(".toolbar").addEventListener("submit", (event) => event.preventDefault());
  byId("query").addEventListener("keydown", (event) => {
    if (event.key === "Enter") goToHit(event.shiftKey ? -1 : 1);
  });
  byId("next").addEventListener("click", () => goToHit(1));
  byId("previous").addEventListener("click", () => goToHit(-1));
}

function escape(event) {
  const { activeElement } = document;
  if (activeElement instanceof HTMLInputElement) {
    const wasEmpty = activeElement.value === "";
    activeElement.value = "";
    activeElement.dispatchEvent(new Event("input"));
    if (wasEmpty) activeElement.blur();
    event.preventDefault();
  } else if (byId("query").value || byId("filter").value || filters.kinds.size > 0) {
    clearFilters();
  } else {
    select(null);
    activeElement?.blur();
  }
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
  if (event.key === "Escape") return escape(event);
  if (event.target instanceof HTMLInputElement) return;
  const actions = {
    j: () => step(1),
    k: () => step(-1),
    "/": () => byId("query").focus(),
    f: () => byId("filter").focus(),
    n: () => goToHit(1),
    N: () => goToHit(-1),
    t: nextTheme,
    "?": () => byId("help").showModal(),
  };
  const isButton = event.target instanceof HTMLButtonElement || event.target.tagName === "SUMMARY";
  if (event.key === "Enter" && !isButton && selected !== null) rowOf(selected).toggle();
  else if (Object.hasOwn(actions, event.key)) actions[event.key]();
  else return;
  event.preventDefault();
}

const THEMES = ["system", "dark", "light"];
let theme = "system";

function setTheme(wanted) {
  theme = THEMES.includes(wanted) ? wanted : "system";
  document.documentElement.dataset.theme = theme;
  byId("theme").textContent = `Theme: ${theme}`;
  readPalette();
  boards.forEach((board) => board.draw());
}

// Some browsers store nothing for pages opened from a file.
function remembered(change) {
  try {
    return change(localStorage);
  } catch {
    return null;
  }
}

function nextTheme() {
  setTheme(THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]);
  remembered((storage) => storage.setItem("orch-theme", theme));
}

startHeader();
setTheme(remembered((storage) => storage.getItem("orch-theme")));
startList();
startKinds();
startFilters();
startTimeline();
startGraph();
byId("theme").addEventListener("click", nextTheme);
byId("keys").addEventListener("click", () => byId("help").showModal());
document.addEventListener("keydown", pressed);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme(theme));
