// The timeline: a row for each slot, a bar for each stack.

const BAR = { row: 24, height: 18, axis: 22 };

class Timeline extends Board {
  constructor(root) {
    super(root, "Timeline of the stacks by slot, coloured by outcome. The list has the same stacks.", true);
    this.ran = stacks.filter((stack) => stack.ran);
    this.slots = [];
    for (const stack of this.ran) (this.slots[stack.slot] ??= []).push(stack);
    for (const slot of this.slots) slot?.sort((a, b) => a.start - b.start);
    this.end = Math.max(1, ...this.slots.map((slot) => slot?.at(-1).end ?? 0));
    const height = Math.min(BAR.axis + this.slots.length * BAR.row + 4, 280);
    this.canvas.style.height = `${Math.max(height, 60)}px`;
  }

  extent() {
    return { width: this.end, height: BAR.axis + this.slots.length * BAR.row + 4 };
  }

  find(x, y) {
    const slot = this.slots[Math.floor((y - BAR.axis) / BAR.row)];
    const slack = 2 / this.view.scale;
    return slot?.find((stack) => x >= stack.start && x <= stack.end + slack)?.index;
  }

  paint(context) {
    const { x, y, scale } = this.view;
    const across = (ms) => x + ms * scale;
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    for (const [slot, members] of this.slots.entries()) {
      const top = y + BAR.axis + slot * BAR.row;
      if (top + BAR.row < BAR.axis || top > this.height) continue;
      for (const stack of members ?? []) {
        if (across(stack.end) < 0 || across(stack.start) > this.width) continue;
        this.paintBar(context, stack, across, top);
      }
    }
    this.paintWaits(context, across, y);
    this.paintAxis(context, across);
  }

  paintBar(context, stack, across, top) {
    const [left, right] = [across(stack.start), Math.max(across(stack.end), across(stack.start) + 2)];
    const room = right - left;
    context.globalAlpha = isShown(stack) || stack.index === selected ? 1 : 0.25;
    context.fillStyle = palette[stack.kind];
    // Between two attempts nothing runs.
    context.globalAlpha *= stack.attempts.length > 1 ? 0.4 : 1;
    context.fillRect(left, top, Math.max(room - 0.5, 1.5), BAR.height);
    if (stack.attempts.length > 1) {
      context.globalAlpha /= 0.4;
      for (const attempt of stack.attempts) {
        const end = attempt.elapsed_ms === null ? stack.end : attempt.start + attempt.elapsed_ms;
        const [from, to] = [across(attempt.start), across(Math.min(end, stack.end))];
        context.fillRect(from, top, Math.max(to - from - 0.5, 1), BAR.height);
      }
    }
    if (critical.has(stack.index)) {
      context.fillStyle = palette.text;
      context.fillRect(left, top + BAR.height + 1, Math.max(room - 0.5, 1.5), 3);
    }
    if (stack.index === selected) {
      context.strokeStyle = palette.accent;
      context.lineWidth = 3;
      context.strokeRect(left, top, Math.max(room, 3), BAR.height);
    }
    if (room > 40) {
      context.fillStyle = palette.surface;
      const shown = Math.max(left, 0);
      const text = fitText(context, `${KINDS[stack.kind].sign} ${stack.name}`, right - shown - 8);
      context.fillText(text, shown + 4, top + BAR.height / 2 + 1);
    }
    context.globalAlpha = 1;
  }

  // Shows what the selected stack waited for, and that, and so on.
  paintWaits(context, across, y) {
    const middle = (stack) => y + BAR.axis + stack.slot * BAR.row + BAR.height / 2;
    context.strokeStyle = palette.accent;
    context.lineWidth = 2;
    let stack = stacks[selected];
    for (let hops = 0; stack?.ran && stack.waited !== null && hops < 1000; hops++) {
      const before = stacks[stack.waited];
      context.setLineDash(stack.for_slot ? [3, 3] : []);
      context.beginPath();
      context.moveTo(across(before.end), middle(before));
      context.lineTo(across(stack.start), middle(stack));
      context.stroke();
      stack = before;
    }
    context.setLineDash([]);
  }

  paintAxis(context, across) {
    context.fillStyle = palette.surface;
    context.fillRect(0, 0, this.width, BAR.axis - 2);
    context.fillStyle = palette.faint;
    const wanted = 90 / this.view.scale;
    const units = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000];
    const minutes = [1, 2, 5, 10, 15, 30, 60, 120, 240, 480, 1440, 10_080].map((m) => m * 60_000);
    const unit = [...units, ...minutes].find((unit) => unit >= wanted) ?? 1e9;
    const first = Math.max(0, Math.floor(-this.view.x / this.view.scale / unit) * unit);
    for (let at = first; across(at) < this.width; at += unit) {
      const text = unit < 100 ? `${at} ms` : duration(at);
      context.fillRect(across(at), 0, 1, BAR.axis - 4);
      context.fillText(text, across(at) + 4, 8);
    }
  }
}

function startTimeline() {
  const root = byId("timeline");
  const ran = stacks.filter((stack) => stack.ran);
  if (ran.length === 0) return root?.remove();
  const slots = new Set(ran.map((stack) => stack.slot)).size;
  const hints = [`${counted(slots, "slot")} of ${run.jobs}`];
  if (critical.size > 0) hints.push(`critical path of ${counted(critical.size, "stack")} underlined`);
  root.querySelector(".hint").textContent = hints.join(", ");
  new Timeline(root);
}
