// The graph: a column for each wave, more than one where a wave is tall.

const NODE = { width: 180, height: 34, gapX: 14, gapY: 8, between: 56 };
const MOST_EDGES = 20_000;

class Graph extends Board {
  constructor(root) {
    super(root, "Graph of the stacks, coloured by outcome. The list has the same stacks.");
    this.place();
  }

  // Gives each node its place.
  place() {
    const waves = [];
    for (const stack of stacks) (waves[stack.wave] ??= []).push(stack.index);
    const [stepX, stepY] = [NODE.width + NODE.gapX, NODE.height + NODE.gapY];
    const most = Math.max(12, Math.ceil(Math.sqrt((stacks.length * stepX) / 1.6 / stepY)));
    this.places = new Array(nodes.length);
    this.columns = new Map(); // the nodes at each x, to find them again
    let x = 0;
    this.heights = 0;
    const starts = [];
    for (const [wave, members] of Array.from(waves, (members) => members ?? []).entries()) {
      starts[wave] = x;
      // A node stands near what it waits for.
      const middle = (index) => {
        const before = nodes[index].before.map((node) => this.middleOf(node));
        return before.reduce((sum, y) => sum + y, 0) / (before.length || 1);
      };
      const sorted = members.map((index) => [middle(index), index]);
      sorted.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
      sorted.forEach(([, index], nth) => {
        const column = Math.floor(nth / most);
        const place = { x: x + column * stepX, y: (nth % most) * stepY };
        this.places[index] = place;
        const key = Math.round(place.x);
        if (!this.columns.has(key)) this.columns.set(key, []);
        this.columns.get(key).push(index);
      });
      this.heights = Math.max(this.heights, Math.min(most, members.length) * stepY);
      x += Math.max(1, Math.ceil(members.length / most)) * stepX + NODE.between;
    }
    this.widths = Math.max(1, x - NODE.between);
    for (let node = stacks.length; node < nodes.length; node++) {
      const next = starts[nodes[node].wave] ?? this.widths;
      const y = this.middleOf(node);
      this.places[node] = { x: next - NODE.between / 2, y, isBetween: true };
    }
  }

  // Returns the height at which a node stands, or where those before it do.
  middleOf(node, depth = 0) {
    const place = this.places[node];
    if (place) return place.y;
    const before = nodes[node].before.slice(0, 50);
    if (before.length === 0 || depth > 3) return 0;
    return before.reduce((sum, next) => sum + this.middleOf(next, depth + 1), 0) / before.length;
  }

  // The drawing is only as tall as necessary.
  resize() {
    const scale = Math.min(1, this.canvas.clientWidth / this.widths);
    this.canvas.style.maxHeight = `${Math.max(80, Math.ceil(this.heights * scale))}px`;
    super.resize();
  }

  centre() {
    const place = this.places[selected];
    if (!place) return super.centre();
    const { x, y, scale } = this.view;
    const at = [x + (place.x + NODE.width / 2) * scale, y + (place.y + NODE.height / 2) * scale];
    const isSeen = at[0] >= 0 && at[1] >= 0 && at[0] <= this.width && at[1] <= this.height;
    return isSeen ? at : super.centre();
  }

  extent() {
    return { width: this.widths, height: Math.max(this.heights, NODE.height) };
  }

  find(x, y) {
    for (const [left, members] of this.columns) {
      if (x < left || x > left + NODE.width) continue;
      return members.find((index) => y >= this.places[index].y && y <= this.places[index].y + NODE.height);
    }
    return undefined;
  }

  paint(context) {
    const { x, y, scale } = this.view;
    context.translate(x, y);
    context.scale(scale, scale);
    this.paintEdges(context);
    const [left, top] = [-x / scale, -y / scale];
    const [right, bottom] = [left + this.width / scale, top + this.height / scale];
    // Letters keep their size while nodes shrink, as long as they fit.
    this.letters = Math.min(13 / scale, NODE.height * 0.75);
    context.font = `${this.letters}px system-ui, sans-serif`;
    context.textBaseline = "middle";
    stacks.forEach((stack, index) => {
      const place = this.places[index];
      if (place.x > right || place.y > bottom) return;
      if (place.x + NODE.width < left || place.y + NODE.height < top) return;
      this.paintNode(context, stack, place, scale);
    });
  }

  paintNode(context, stack, { x, y }, scale) {
    const isSelected = stack.index === selected;
    const isDim = !isShown(stack) && !isSelected;
    context.globalAlpha = isDim ? 0.25 : 1;
    const hasText = NODE.height * scale >= 11;
    const sign = this.letters * 1.5;
    context.fillStyle = hasText ? palette.surface : palette[stack.kind];
    context.fillRect(x, y, NODE.width, NODE.height);
    context.fillStyle = palette[stack.kind];
    if (hasText) context.fillRect(x, y, sign, NODE.height);
    context.lineWidth = isSelected ? 3 / Math.min(1, scale) : 1;
    context.strokeStyle = isSelected ? palette.accent : palette[stack.kind];
    context.strokeRect(x, y, NODE.width, NODE.height);
    if (hasText) {
      context.fillStyle = palette.surface;
      context.fillText(KINDS[stack.kind].sign, x + sign / 4, y + NODE.height / 2);
      context.fillStyle = palette.text;
      const name = fitText(context, stack.name, NODE.width - sign * 1.4);
      context.fillText(name, x + sign * 1.2, y + NODE.height / 2);
    }
    context.globalAlpha = 1;
  }

  paintEdges(context) {
    const isFew = run.edges.length <= MOST_EDGES;
    const thick = Math.max(1, 1 / this.view.scale);
    if (isFew) {
      context.globalAlpha = Math.max(0.15, Math.min(0.7, 60 / Math.sqrt(run.edges.length + 1) / 5));
      context.strokeStyle = palette.faint;
      context.lineWidth = thick;
      context.beginPath();
      for (const [from, to] of run.edges) this.trace(context, from, to);
      context.stroke();
      context.globalAlpha = 1;
    }
    context.strokeStyle = palette.text;
    context.lineWidth = 2 * thick;
    context.beginPath();
    run.critical.forEach((to, nth) => {
      const from = run.critical[nth - 1];
      if (nth > 0 && !stacks[to].for_slot) this.trace(context, from, to);
    });
    context.stroke();
    if (selected === null) return;
    context.strokeStyle = palette.accent;
    context.beginPath();
    for (const direction of ["before", "after"]) this.traceAll(context, selected, direction);
    context.stroke();
  }

  // Traces the edges of a stack, through the nodes in between.
  traceAll(context, node, direction) {
    const seen = new Set();
    const open = [node];
    while (open.length > 0) {
      const from = open.pop();
      for (const to of nodes[from][direction]) {
        if (direction === "after") this.trace(context, from, to);
        else this.trace(context, to, from);
        if (to < stacks.length || seen.has(to)) continue;
        seen.add(to);
        open.push(to);
      }
    }
  }

  trace(context, from, to) {
    const [a, b] = [this.places[from], this.places[to]];
    const [x1, y1] = a.isBetween ? [a.x, a.y] : [a.x + NODE.width, a.y + NODE.height / 2];
    const [x2, y2] = b.isBetween ? [b.x, b.y] : [b.x, b.y + NODE.height / 2];
    const bend = Math.min(60, Math.abs(x2 - x1) / 2);
    context.moveTo(x1, y1);
    context.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2);
  }
}

function startGraph() {
  const root = byId("graph");
  if (stacks.length === 0) return;
  const waves = new Set(stacks.map((stack) => stack.wave)).size;
  const hint = `${counted(stacks.length, "stack")} in ${counted(waves, "wave")}`;
  root.querySelector(".hint").textContent = `${hint}, left to right`;
  new Graph(root);
}
