// Logs: parsed on demand, and drawn in pieces.

const FIRST_LINES = 100;
const MORE_LINES = 500;
const MOST_LINES = 2000;
const LONGEST_LINE = 2000;
const MORE_OF_LINE = 20_000;

// Escape sequences: colours, which are kept, and everything else, which is not.
const SEQUENCES =
  /\x1b(?:\[([0-9;:]*)m|\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]*[0-~])/g;

const plain = (text) => text.replace(SEQUENCES, "");

// The text of a log and where its lines begin.
class Log {
  constructor(id, attempt) {
    const { sections, problem, omitted } = JSON.parse(byId(id)?.textContent || '{"sections":[]}');
    const pieces = [];
    this.omitted = omitted ?? 0;
    this.problem = problem;
    this.switches = []; // where the stream changes, from stdout to stderr and back
    let length = 0;
    for (const [nth, section] of sections.entries()) {
      if (nth > 0) {
        const note = `\n[${size(this.omitted)} of ${size(attempt.bytes)} are not in this page]\n`;
        pieces.push(note);
        length += note.length;
      }
      section.forEach((piece, at) => {
        if (at > 0) this.switches.push(length);
        pieces.push(piece);
        length += piece.length;
      });
      if (section.length % 2 === 0) this.switches.push(length);
    }
    this.text = pieces.join("");
    this.starts = [0];
    for (let at = this.text.indexOf("\n"); at >= 0; at = this.text.indexOf("\n", at + 1)) {
      this.starts.push(at + 1);
    }
    // The end of the last line does not begin another one.
    if (this.starts.at(-1) === this.text.length) this.starts.pop();
  }

  get lines() {
    return this.starts.length;
  }

  line(number) {
    const end = this.starts[number + 1] ?? this.text.length + 1;
    const line = this.text.slice(this.starts[number], end - 1);
    return line.endsWith("\r") || line.endsWith("\n") ? line.slice(0, -1) : line;
  }

  isStderr(number) {
    let [low, high] = [0, this.switches.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.switches[middle] <= this.starts[number]) low = middle + 1;
      else high = middle;
    }
    return low % 2 === 1;
  }
}

// Applies a colour sequence to the style, if it is simple.
function restyle(style, codes) {
  const numbers = codes.split(/[;:]/).map(Number);
  for (let at = 0; at < numbers.length; at++) {
    const code = numbers[at];
    if (code === 0) style = {};
    else if (code === 1) style = { ...style, bold: true };
    else if (code === 22) style = { ...style, bold: false };
    else if (code === 4) style = { ...style, underlined: true };
    else if (code === 24) style = { ...style, underlined: false };
    else if (code >= 30 && code <= 37) style = { ...style, colour: code - 30 };
    else if (code >= 90 && code <= 97) style = { ...style, colour: code - 90 };
    else if (code === 39) style = { ...style, colour: undefined };
    else if (code === 38 || code === 48) at += numbers[at + 1] === 5 ? 2 : 4;
  }
  return style;
}

// Splits a line in pieces of one style each, without escape sequences.
function styled(line) {
  const pieces = [];
  let [style, end] = [{}, 0];
  const add = (text) => text && pieces.push({ text, style });
  for (const match of line.matchAll(SEQUENCES)) {
    add(line.slice(end, match.index));
    if (match[1] !== undefined) style = restyle(style, match[1]);
    end = match.index + match[0].length;
  }
  add(line.slice(end));
  return pieces;
}

// Adds a line to an element, and marks the search term.
function addStyled(into, line, query) {
  const pieces = styled(line);
  const marks = [];
  if (query) {
    const whole = pieces.map((piece) => piece.text).join("").toLowerCase();
    for (let at = whole.indexOf(query); at >= 0; at = whole.indexOf(query, at + query.length)) {
      marks.push([at, at + query.length]);
    }
  }
  let [begin, mark] = [0, 0];
  for (const { text, style } of pieces) {
    const end = begin + text.length;
    let at = begin;
    while (at < end) {
      while (mark < marks.length && marks[mark][1] <= at) mark += 1;
      const [from, to] = marks[mark] ?? [Infinity, Infinity];
      const isMarked = from <= at;
      const next = Math.min(end, isMarked ? to : from);
      const names = [style.bold && "bold", style.underlined && "underlined"];
      if (style.colour !== undefined) names.push(`colour-${style.colour}`);
      const shown = visible(text.slice(at - begin, next - begin));
      const name = names.filter(Boolean).join(" ");
      if (isMarked) into.append(element("mark", { class: name || undefined }, shown));
      else if (name) into.append(element("span", { class: name }, shown));
      else into.append(shown);
      at = next;
    }
    begin = end;
  }
}

// A part of a log, which the user can extend at either end.
class LogView {
  constructor(attempt, name, lines = FIRST_LINES) {
    this.log = new Log(attempt.log, attempt);
    this.query = "";
    this.current = -1;
    const button = (text, action) => element("button", { type: "button", onclick: action }, text);
    this.above = button("", () => this.grow(-MORE_LINES));
    this.below = button("", () => this.grow(MORE_LINES));
    const count = `${counted(this.log.lines, "line")}, ${size(attempt.bytes)}`;
    const hasStderr = this.log.switches.length > 0;
    const bar = element(
      "div",
      { class: "log-bar" },
      element("span", {}, count),
      hasStderr ? element("span", { class: "stderr-key" }, "stderr") : undefined,
      button("First lines", () => this.show(0, FIRST_LINES)),
      button("Last lines", () => this.show(this.log.lines - FIRST_LINES, this.log.lines)),
    );
    this.box = element("div", { class: "lines", tabindex: 0, role: "region", "aria-label": name });
    this.root = element("div", { class: "log" }, bar, this.above, this.box, this.below);
    if (this.log.problem) {
      const problem = `The log could not be read to its end: ${visible(this.log.problem)}`;
      bar.after(element("p", { class: "note" }, problem));
    }
    this.show(this.log.lines - lines, this.log.lines);
  }

  show(from, to) {
    this.from = Math.max(0, from);
    this.to = Math.min(this.log.lines, to);
    const drawn = document.createDocumentFragment();
    for (let number = this.from; number < this.to; number++) drawn.append(this.draw(number));
    this.box.replaceChildren(drawn);
    const [above, below] = [this.from, this.log.lines - this.to];
    this.above.hidden = above === 0;
    this.below.hidden = below === 0;
    this.above.textContent = `Show ${Math.min(above, MORE_LINES)} of ${counted(above, "line")} above`;
    this.below.textContent = `Show ${Math.min(below, MORE_LINES)} of ${counted(below, "line")} below`;
  }

  // Shows more lines at one end, and where there are too many, fewer at the other.
  grow(lines) {
    let [from, to] = [this.from, this.to];
    const kept = lines < 0 ? this.box.firstElementChild : this.box.lastElementChild;
    const number = kept?.dataset.line;
    if (lines < 0) {
      from = Math.max(0, from + lines);
      to = Math.min(to, from + MOST_LINES);
    } else {
      to = Math.min(this.log.lines, to + lines);
      from = Math.max(from, to - MOST_LINES);
    }
    this.show(from, to);
    this.box.querySelector(`[data-line="${number}"]`)?.scrollIntoView({ block: "center" });
  }

  draw(number) {
    const line = this.log.line(number);
    const row = element("div", { "data-line": number + 1 });
    const isStderr = this.log.isStderr(number);
    row.className = `line${isStderr ? " stderr" : ""}${number === this.current ? " current" : ""}`;
    const text = element("span", { class: "text" });
    row.append(text);
    let end = Math.min(line.length, LONGEST_LINE);
    addStyled(text, line.slice(0, end), this.query);
    if (end < line.length) {
      const label = () => `show more of ${counted(line.length - end, "further character")}`;
      const more = element("button", { type: "button", class: "more" }, label());
      more.addEventListener("click", () => {
        addStyled(text, line.slice(end, end + MORE_OF_LINE), this.query);
        end = Math.min(line.length, end + MORE_OF_LINE);
        more.textContent = label();
        more.hidden = end === line.length;
      });
      row.append(more);
    }
    return row;
  }

  // Marks the search term.
  mark(query) {
    if (query === this.query) return;
    [this.query, this.current] = [query, -1];
    this.show(this.from, this.to);
  }

  goTo(number) {
    this.current = number;
    if (number < this.from || number >= this.to) this.show(number - 50, number + 50);
    else this.show(this.from, this.to);
    this.box.querySelector(".current")?.scrollIntoView({ block: "center" });
  }
}
