// A drawing that the user can move and zoom with mouse, fingers or keys.

const boards = [];

const palette = {};

// Reads the colours of the style sheet, so that a drawing follows the theme.
function readPalette() {
  const probe = element("i");
  document.body.append(probe);
  for (const name of [...Object.keys(KINDS), "text", "faint", "surface", "accent"]) {
    probe.style.color = `var(--${name})`;
    palette[name] = getComputedStyle(probe).color;
  }
  probe.remove();
}

class Board {
  // The subclass has `extent()` (width and height of the world), `paint(context)` and `find(x, y)`,
  // which returns the index of a stack. With `onlyWide`, zooming leaves heights as they are.
  constructor(root, label, onlyWide = false) {
    this.root = root;
    this.onlyWide = onlyWide;
    this.view = { x: 0, y: 0, scale: 1 };
    this.pointers = new Map();
    this.canvas = element("canvas", { tabindex: 0, role: "img", "aria-label": label });
    this.tip = element("p", { class: "tip", "aria-hidden": "true" });
    const button = (text, title, action) =>
      element("button", { type: "button", title, "aria-label": title, onclick: action }, text);
    this.controls = element(
      "div",
      { class: "controls" },
      button("+", "Zoom in", () => this.zoom(1.5, ...this.centre())),
      button("−", "Zoom out", () => this.zoom(1 / 1.5)),
      button("Fit", "Show everything", () => this.fit()),
    );
    root.append(element("div", { class: "frame" }, this.canvas, this.tip, this.controls));
    this.listen();
    boards.push(this);
  }

  listen() {
    const { canvas } = this;
    // A new height within the callback would be reported as a loop.
    new ResizeObserver(() => requestAnimationFrame(() => this.resize())).observe(canvas);
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, event);
      this.travelled = 0;
    });
    canvas.addEventListener("pointermove", (event) => this.moved(event));
    canvas.addEventListener("pointerup", (event) => {
      const index = this.at(event);
      const isClick = this.pointers.size === 1 && this.travelled < 5;
      this.pointers.delete(event.pointerId);
      if (isClick && index !== undefined) select(index, { open: true, scroll: true });
    });
    canvas.addEventListener("pointercancel", (event) => this.pointers.delete(event.pointerId));
    canvas.addEventListener("pointerleave", () => (this.tip.textContent = ""));
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 300), event.offsetX, event.offsetY);
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const moves = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (moves[event.key]) this.pan(...moves[event.key]);
      else if (event.key === "+" || event.key === "=") this.zoom(1.5);
      else if (event.key === "-") this.zoom(1 / 1.5);
      else if (event.key === "0") this.fit();
      else return;
      event.preventDefault();
    });
  }

  moved(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) {
      const index = this.at(event);
      this.tip.textContent = index === undefined ? "" : this.describe(stacks[index]);
      this.canvas.style.cursor = index === undefined ? "grab" : "pointer";
      return;
    }
    const [dx, dy] = [event.offsetX - before.offsetX, event.offsetY - before.offsetY];
    this.travelled += Math.abs(dx) + Math.abs(dy);
    const other = [...this.pointers.values()].find((known) => known.pointerId !== event.pointerId);
    if (other) {
      const gap = (a) => Math.hypot(a.offsetX - other.offsetX, a.offsetY - other.offsetY) || 1;
      this.zoom(gap(event) / gap(before), other.offsetX, other.offsetY);
    } else {
      this.pan(dx, dy);
    }
    this.pointers.set(event.pointerId, event);
  }

  describe(stack) {
    const took = stack.ran ? `, ${duration(stack.end - stack.start)}` : "";
    return `${stack.name}: ${KINDS[stack.kind].title}${took}`;
  }

  at(event) {
    const { x, y, scale } = this.view;
    return this.find((event.offsetX - x) / scale, (event.offsetY - y) / (this.onlyWide ? 1 : scale));
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (width === 0 || (width === this.width && height === this.height)) return;
    [this.width, this.height] = [width, height];
    const ratio = Math.min(devicePixelRatio || 1, 2);
    [this.canvas.width, this.canvas.height] = [width * ratio, height * ratio];
    this.ratio = ratio;
    this.fit();
  }

  fit() {
    if (!this.width) return;
    const { width, height } = this.extent();
    const wide = this.width / width;
    this.view.scale = this.onlyWide ? wide : Math.min(wide, this.height / height, 1);
    this.view.x = (this.width - width * this.view.scale) / 2;
    this.view.y = this.onlyWide ? 0 : (this.height - height * this.view.scale) / 2;
    this.least = this.view.scale;
    this.draw();
  }

  pan(dx, dy) {
    this.view.x += dx;
    this.view.y += dy;
    this.keep();
    this.draw();
  }

  zoom(factor, x = this.width / 2, y = this.height / 2) {
    const { view } = this;
    const most = this.onlyWide ? this.least * 5000 : 3;
    const scale = Math.min(Math.max(view.scale * factor, this.least), Math.max(most, this.least));
    view.x = x - ((x - view.x) * scale) / view.scale;
    if (!this.onlyWide) view.y = y - ((y - view.y) * scale) / view.scale;
    view.scale = scale;
    this.keep();
    this.draw();
  }

  // Returns what a button zooms to.
  centre() {
    return [this.width / 2, this.height / 2];
  }

  // Keeps the drawing in sight.
  keep() {
    const { width, height } = this.extent();
    const { view } = this;
    const bound = (offset, length, room) =>
      length <= room ? Math.min(Math.max(offset, 0), room - length) : Math.min(Math.max(offset, room - length), 0);
    view.x = bound(view.x, width * view.scale, this.width);
    const tall = height * (this.onlyWide ? 1 : view.scale);
    view.y = this.onlyWide && tall <= this.height ? 0 : bound(view.y, tall, this.height);
  }

  draw() {
    if (this.isAsked || !this.width) return;
    this.isAsked = true;
    requestAnimationFrame(() => {
      this.isAsked = false;
      const context = this.canvas.getContext("2d");
      context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
      context.clearRect(0, 0, this.width, this.height);
      this.paint(context);
    });
  }
}

// Writes text in a box, and drops its beginning if it does not fit.
function fitText(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (context.measureText(`…${text.slice(middle)}`).width <= width) high = middle;
    else low = middle + 1;
  }
  return low >= text.length ? "" : `…${text.slice(low)}`;
}

followers.push(() => boards.forEach((board) => board.draw()));
