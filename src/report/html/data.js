// The run, and what all parts of the page share.

const run = JSON.parse(document.getElementById("run").textContent);
const stacks = run.stacks;
const byId = (id) => document.getElementById(id);

// The kinds of stacks, in the order in which they matter. Each has a sign, so that colour is never the
// only signal.
const KINDS = {
  failed: { title: "failed", sign: "✗" },
  unknown: { title: "end unknown", sign: "?" },
  running: { title: "running", sign: "▸" },
  cancelled: { title: "cancelled", sign: "⊘" },
  skipped: { title: "skipped", sign: "–" },
  other: { title: "other", sign: "•" },
  changed: { title: "succeeded with changes", sign: "±" },
  succeeded: { title: "succeeded", sign: "✓" },
  wouldrun: { title: "would run", sign: "○" },
  waiting: { title: "not run", sign: "○" },
  leftout: { title: "left out", sign: "·" },
  unchanged: { title: "succeeded without changes", sign: "✓" },
};

function kindOf(stack) {
  switch (stack.state) {
    case "succeeded":
      return { true: "changed", false: "unchanged" }[stack.changed] ?? "succeeded";
    case "would run":
      return "wouldrun";
    case "waiting":
    case "not run":
      return "waiting";
    case "left out":
      return "leftout";
    default:
      return Object.hasOwn(KINDS, stack.state) ? stack.state : "other";
  }
}

stacks.forEach((stack, index) => {
  stack.index = index;
  stack.kind = kindOf(stack);
  stack.name = visible(stack.path).replaceAll("\n", "\\n").replaceAll("\t", "\\t");
  stack.lower = stack.path.toLowerCase();
  stack.ran = stack.start !== undefined;
  stack.before = [];
  stack.after = [];
});

const positions = new Map(stacks.map((stack) => [stack.path, stack.index]));

// All nodes: the stacks, then the intermediate nodes that run nothing.
const nodes = [...stacks, ...run.between.map((wave) => ({ wave, before: [], after: [] }))];
for (const [from, to] of run.edges) {
  nodes[from].after.push(to);
  nodes[to].before.push(from);
}

// Returns the nearest stacks in a direction ("before" or "after"), through the nodes in between.
function neighbours(stack, direction) {
  const found = new Set();
  const seen = new Set();
  const open = [...stack[direction]];
  while (open.length > 0) {
    const node = open.pop();
    if (seen.has(node)) continue;
    seen.add(node);
    if (node < stacks.length) found.add(node);
    else open.push(...nodes[node][direction]);
  }
  return [...found].sort((a, b) => a - b);
}

const critical = new Set(run.critical);

// Makes characters visible that would hide or reorder others.
function visible(text) {
  return text.replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g,
    (character) => `\\u{${character.codePointAt(0).toString(16)}}`,
  );
}

// Makes an element. Its content is always text.
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== undefined && child !== null && child !== false));
  return made;
}

function duration(ms) {
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)}s`;
  const pad = (number) => String(number).padStart(2, "0");
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes}m ${pad(Math.floor(ms / 1000) % 60)}s`;
  return `${Math.floor(minutes / 60)}h ${pad(minutes % 60)}m`;
}

const counted = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;

function size(bytes) {
  if (bytes < 1000) return counted(bytes, "byte");
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

// The selected stack, which all views follow.
let selected = null;
const followers = [];

function select(index, how = {}) {
  selected = index;
  for (const follow of followers) follow(how);
}

const pause = () => new Promise((resume) => setTimeout(resume));
