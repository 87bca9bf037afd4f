// The list of stacks: in groups by kind, each row with its details and logs when it is open.

const ROWS = 100;
const OPEN_FAILURES = 20;
const LAST_LINES = 14; // of the log of a failed stack: enough for an error
const rows = new Map();
const groups = [];
const views = new Map(); // the open logs: from the id of the log to its view
const filters = { words: [], kinds: new Set(), hits: null };
let query = "";

const toFront = (index) => element(
  "button",
  { type: "button", class: "link", onclick: () => select(index, { open: true, scroll: true }) },
  stacks[index].name,
);

function waitedText(stack) {
  if (!stack.ran) return undefined;
  if (stack.waited === null) return ["nothing"];
  const idle = Math.max(0, stack.start - stacks[stack.waited].end);
  const then = idle >= 1000 ? `, and started ${duration(idle)} later` : "";
  return stack.for_slot
    ? ["a free slot, which ", toFront(stack.waited), " had", then]
    : [toFront(stack.waited), then];
}

// Returns the names of the first stacks, and how many more there are.
function listed(indices) {
  const items = indices.slice(0, 12).flatMap((index) => [toFront(index), " "]);
  if (indices.length > 12) items.push(`and ${(indices.length - 12).toLocaleString("en")} more`);
  return items;
}

// Returns the turns that led to one, back to the first, each with what asked for the next.
function causesText(causes) {
  return causes.flatMap(({ stack, turn, run: earlier, state, policies }, nth) => {
    const index = earlier === undefined ? positions.get(stack) : undefined;
    const name = index === undefined ? visible(stack) : toFront(index);
    const which = `${turn === 1 ? "" : ` (turn ${turn})`}${earlier === undefined ? "" : ` in run ${earlier}`}`;
    const answer = visible(`${which}: ${state}, ${policies.length === 1 ? "policy" : "policies"} ${policies.join(", ")}`);
    return [nth > 0 && ", which followed ", name, answer];
  });
}

function attemptPart(stack, attempt, isLast) {
  const parts = attempt.notes.map(visible);
  if (attempt.elapsed_ms !== null) parts.push(`took ${duration(attempt.elapsed_ms)}`);
  const title = stack.attempts.length > 1 ? `Attempt ${attempt.number}` : "Log";
  const summary = element("summary", {}, [title, ...parts].join(" · "));
  const part = element("details", { class: "attempt" }, summary);
  if (attempt.log === null) {
    const why = "No output is on record: the command printed nothing, or it used the terminal of orch.";
    part.append(element("p", { class: "note" }, why));
  }
  const load = () => {
    if (!part.open || attempt.log === null || views.has(attempt.log)) return;
    if (document.readyState === "loading" && !byId(attempt.log)) {
      document.addEventListener("DOMContentLoaded", load, { once: true });
      return;
    }
    const lines = stack.kind === "failed" ? LAST_LINES : FIRST_LINES;
    const view = new LogView(attempt, `${title} of ${stack.name}`, lines);
    views.set(attempt.log, view);
    view.mark(query);
    part.append(view.root);
    if (stack.kind === "failed") view.box.scrollTop = view.box.scrollHeight;
  };
  part.addEventListener("toggle", load);
  part.open = isLast;
  return part;
}

function detailsOf(stack) {
  const facts = element("dl");
  const add = (name, ...values) => {
    facts.append(element("dt", {}, name), element("dd", {}, ...values));
  };
  if (stack.ran) {
    const end = `${duration(stack.start)} to ${duration(stack.end)} after the run began`;
    add("Ran", `${end}, in slot ${stack.slot + 1}`);
    add("Waited for", ...waitedText(stack));
  }
  for (const { turn, causes, more } of stack.follows) {
    add(turn === 1 ? "Follows" : `Turn ${turn} follows`, ...causesText(causes), more && ", …");
  }
  const [before, after] = [neighbours(stack, "before"), neighbours(stack, "after")];
  if (before.length > 0) add("Runs after", ...listed(before));
  if (after.length > 0) add("Runs before", ...listed(after));
  const parts = stack.attempts.map((attempt, nth) =>
    attemptPart(stack, attempt, nth === stack.attempts.length - 1),
  );
  // Why it failed comes before where it stands in the run.
  return stack.kind === "failed" ? [...parts, facts] : [facts, ...parts];
}

class Row {
  constructor(stack) {
    this.stack = stack;
    const { sign, title } = KINDS[stack.kind];
    const span = (name, text) => text && element("span", { class: name }, text);
    const tries = stack.attempts.length;
    this.hits = element("span", { class: "hits" });
    this.button = element(
      "button",
      { type: "button", class: "row", "aria-expanded": "false", onclick: () => this.clicked() },
      element("span", { class: "sign", "aria-hidden": "true" }, sign),
      span("path", stack.name),
      span("word", stack.kind === "other" ? visible(stack.state) : title),
      span("changes", stack.changes),
      span("tries", tries > 1 && `${tries} attempts`),
      critical.has(stack.index) && span("critical", "critical path"),
      this.hits,
      span("took", stack.ran && duration(stack.end - stack.start)),
    );
    const cause = stack.detail && element("p", { class: "cause" }, visible(stack.detail));
    this.details = element("div", { class: "details", hidden: true });
    this.root = element("li", { "data-kind": stack.kind }, this.button, cause, this.details);
  }

  get isOpen() {
    return !this.details.hidden;
  }

  clicked() {
    this.toggle();
    select(this.stack.index, {});
  }

  toggle(open = !this.isOpen) {
    if (open && !this.details.hasChildNodes()) this.details.append(...detailsOf(this.stack));
    this.details.hidden = !open;
    this.button.setAttribute("aria-expanded", String(open));
  }

  showHits() {
    const count = filters.hits?.get(this.stack.index) ?? 0;
    this.hits.textContent = count > 0 ? counted(count, "matching line") : "";
  }
}

function rowOf(index) {
  let row = rows.get(index);
  if (!row) rows.set(index, (row = new Row(stacks[index])));
  row.showHits();
  return row;
}

class Group {
  constructor(kind) {
    this.kind = kind;
    this.all = stacks.filter((stack) => stack.kind === kind);
    this.isOpen = kind !== "unchanged" && kind !== "leftout";
    this.heading = element("button", { type: "button", onclick: () => this.toggle() });
    this.list = element("ul");
    this.less = element("button", { type: "button", onclick: () => this.draw(this.first - ROWS, this.last) });
    this.more = element("button", { type: "button", onclick: () => this.draw(this.first, this.last + ROWS) });
    const heading = element("h3", {}, this.heading);
    this.root = element("section", { "data-kind": kind }, heading, this.less, this.list, this.more);
  }

  toggle(open = !this.isOpen) {
    this.isOpen = open;
    this.filter();
  }

  filter() {
    this.shown = this.all.filter(isShown);
    this.list.replaceChildren();
    this.root.hidden = this.shown.length === 0;
    const { sign, title } = KINDS[this.kind];
    const count = counted(this.shown.length, "stack");
    this.heading.textContent = `${this.isOpen ? "▾" : "▸"} ${sign} ${count} ${title}`;
    this.heading.setAttribute("aria-expanded", String(this.isOpen));
    this.less.hidden = this.list.hidden = this.more.hidden = !this.isOpen;
    if (this.isOpen) this.draw(0, ROWS);
  }

  // Draws only these rows.
  draw(first, last) {
    [this.first, this.last] = [Math.max(0, first), Math.min(this.shown.length, last)];
    const drawn = this.shown.slice(this.first, this.last);
    this.list.replaceChildren(...drawn.map((stack) => rowOf(stack.index).root));
    const left = this.shown.length - this.last;
    this.less.hidden = this.first === 0;
    this.more.hidden = left === 0;
    this.less.textContent = `Show ${Math.min(ROWS, this.first)} of ${counted(this.first, "stack")} above`;
    this.more.textContent = `Show ${Math.min(ROWS, left)} of ${counted(left, "stack")} below`;
  }
}

function isShown(stack) {
  if (filters.kinds.size > 0 && !filters.kinds.has(stack.kind)) return false;
  if (filters.hits && !filters.hits.has(stack.index)) return false;
  return filters.words.every((word) => stack.lower.includes(word));
}

function filterList() {
  for (const group of groups) group.filter();
}

// Draws the row of a stack, wherever it is.
function reveal(index) {
  const group = groups.find((group) => group.kind === stacks[index].kind);
  if (!isShown(stacks[index])) clearFilters();
  if (!group.isOpen) group.toggle(true);
  const at = group.shown.indexOf(stacks[index]);
  if (at < group.first || at >= group.last) {
    const first = at - (at % ROWS);
    group.draw(first, first + ROWS);
  }
  return rowOf(index);
}

// Selects the next stack of the list, or the one before.
function step(by) {
  const shown = groups.flatMap((group) => (group.isOpen ? group.shown : []));
  if (shown.length === 0) return;
  const at = shown.findIndex((stack) => stack.index === selected);
  const next = at < 0 ? 0 : Math.min(shown.length - 1, Math.max(0, at + by));
  select(shown[next].index, { scroll: true });
}

let marked = null; // the selected row, which a filter may have taken out of the page

followers.push(({ open, scroll }) => {
  marked?.root.classList.remove("selected");
  marked = null;
  if (selected === null) return;
  const row = reveal(selected);
  marked = row;
  row.root.classList.add("selected");
  if (open) row.toggle(true);
  if (scroll) {
    row.button.focus({ preventScroll: true });
    row.root.scrollIntoView({ block: row.isOpen ? "start" : "nearest" });
  }
});

function startList() {
  for (const kind of Object.keys(KINDS)) {
    if (stacks.some((stack) => stack.kind === kind)) groups.push(new Group(kind));
  }
  filterList();
  byId("groups").append(...groups.map((group) => group.root));
  if (stacks.length === 0) {
    byId("course").remove();
    document.querySelector(".toolbar").hidden = true;
    byId("groups").append(element("p", { class: "note" }, "There was no stack to run in."));
  }
  // A log is read when its stack scrolls into view.
  const opener = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      opener.unobserve(entry.target);
      rowOf(Number(entry.target.dataset.opens)).toggle(true);
    }
  });
  const failed = stacks.filter((stack) => ["failed", "unknown"].includes(stack.kind));
  for (const stack of failed.slice(0, OPEN_FAILURES)) {
    const { root } = rowOf(stack.index);
    root.dataset.opens = stack.index;
    opener.observe(root);
  }
}
