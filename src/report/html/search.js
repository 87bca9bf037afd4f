// The search in all logs, in slices, so that the page stays usable.

const SLICE_MS = 12;
const SLICE_TEXT = 256 * 1024;
const MOST_HITS = 1000; // remembered for each log; all are counted

let searches = 0;
let hits = []; // { stack, attempt, line }
let hit = -1;

// Returns the matches in a log, found slice by slice, or `null` once the user searches for something else.
async function searchLog(attempt, wanted, isOver, turn) {
  const log = new Log(attempt.log, attempt);
  const found = { count: 0, lines: [] };
  let line = 0;
  while (line < log.lines) {
    const from = line;
    const begin = log.starts[from];
    // At least one line, or part of one that is too long.
    while (line < log.lines && log.starts[line] - begin < SLICE_TEXT) line += 1;
    const end = log.starts[line] ?? log.text.length;
    const text = plain(log.text.slice(begin, end)).toLowerCase();
    let [number, counted] = [from, 0];
    for (let at = text.indexOf(wanted); at >= 0; ) {
      for (let feed = text.indexOf("\n", counted); feed >= 0 && feed < at; feed = text.indexOf("\n", counted)) {
        number += 1;
        counted = feed + 1;
      }
      found.count += 1;
      if (found.lines.length < MOST_HITS) found.lines.push(number);
      const feed = text.indexOf("\n", at);
      at = feed < 0 ? -1 : text.indexOf(wanted, feed + 1);
    }
    if (performance.now() > turn.until) {
      await pause();
      if (isOver()) return null;
      turn.until = performance.now() + SLICE_MS;
    }
  }
  return found;
}

async function search(text) {
  const number = ++searches;
  const isOver = () => number !== searches;
  const wanted = text.toLowerCase();
  query = wanted;
  [hits, hit] = [[], -1];
  for (const view of views.values()) view.mark(wanted);
  if (!wanted) {
    filters.hits = null;
    filterList();
    return report();
  }
  filters.hits = new Map();
  byId("status").textContent = "Searching";
  const order = groups.flatMap((group) => group.all);
  const turn = { until: performance.now() + SLICE_MS };
  let [lines, shown] = [0, performance.now()];
  for (const [nth, stack] of order.entries()) {
    let count = 0;
    for (const attempt of stack.attempts) {
      if (attempt.log === null) continue;
      const found = await searchLog(attempt, wanted, isOver, turn);
      if (found === null) return;
      count += found.count;
      for (const line of found.lines) hits.push({ stack, attempt, line });
    }
    if (count > 0) filters.hits.set(stack.index, count);
    lines += count;
    if (performance.now() - shown > 500) {
      byId("status").textContent = `Searching: ${Math.round((100 * nth) / order.length)} %`;
      await pause();
      if (isOver()) return;
      shown = performance.now();
    }
  }
  filterList();
  report(lines);
}

// Shows how many stacks and matches there are.
function report(lines) {
  const shown = stacks.filter(isShown).length;
  const parts = [];
  if (filters.hits) {
    const where = counted(filters.hits.size, "stack");
    parts.push(lines === 0 ? "No log contains this text." : `${counted(lines ?? hits.length, "matching line")} in ${where}.`);
  }
  if (shown < stacks.length) parts.push(`${counted(shown, "stack")} of ${stacks.length.toLocaleString("en")} shown.`);
  byId("status").textContent = parts.join(" ");
  byId("hits").hidden = hits.length === 0;
  boards.forEach((board) => board.draw());
}

// Goes to the next match, or the one before.
function goToHit(by) {
  if (hits.length === 0) return;
  hit = (hit + by + hits.length) % hits.length;
  if (hit < 0) hit = hits.length - 1;
  const { stack, attempt, line } = hits[hit];
  select(stack.index, { open: true });
  const row = rowOf(stack.index);
  const nth = stack.attempts.indexOf(attempt);
  const part = row.details.querySelectorAll(".attempt")[nth];
  part.open = true;
  // The browser sends this event too, but later.
  part.dispatchEvent(new Event("toggle"));
  views.get(attempt.log)?.goTo(line);
  byId("status").textContent = `Match ${hit + 1} of ${counted(hits.length, "line")}: ${stack.name}`;
}
