// The map of latent space: pan, zoom, lasso, box, click, legend, pictures to save. Everything is drawn here; the server
// is told the corners of a drawn line, or the number of a clicked scenario, and nothing else.
// Text in the message is only ever set as text, never as HTML.

const ICONS = {
  pan: "M12 3v18M3 12h18M12 3l-3 3M12 3l3 3M12 21l-3-3M12 21l3-3M3 12l3-3M3 12l3 3M21 12l-3-3M21 12l-3 3",
  lasso: "M7 15c-3-1-4-3-4-5 0-4 4-6 9-6s9 2 9 6-4 6-9 6c-1 0-2 0-3-.3M8 14a2 2 0 1 0 .1 0M8 18c0 2-1 3-3 3",
  box: "M4 8V4h4M16 4h4v4M20 16v4h-4M8 20H4v-4M11 4h2M11 20h2M4 11v2M20 11v2",
  plus: "M12 5v14M5 12h14", minus: "M5 12h14", fit: "M4 9V4h5M15 4h5v5M20 15v5h-5M9 20H4v-5",
  clear: "M6 6l12 12M18 6L6 18", full: "M4 9V4h5M20 15v5h-5M4 4l6 6M20 20l-6-6",
};
const NEAR = 7; // pixels within which a click or the pointer finds a scenario
const DOUBLE_MS = 260; // a second click within this time makes a double click
const VIEW_EVENT = "avshift-map-view";
const SPOTS = [[2e3, 3], [12e3, 2.2], [60e3, 1.5], [Infinity, 1]]; // points in sight -> radius in pixels
const maps = new WeakMap();

export default function (component) {
  const { data, parentElement, setStateValue, setTriggerValue } = component;
  let map = maps.get(parentElement);
  if (!map) {
    map = new LatentMap(parentElement);
    maps.set(parentElement, map);
  }
  map.tell = { setStateValue, setTriggerValue };
  map.show(data);
  return () => { map.close(); maps.delete(parentElement); };
}

class LatentMap {
  constructor(parent) {
    this.host = parent.host ?? parent;
    this.views = {}; // space -> middle and pixels a grid step
    this.lines = {}; // space -> corners of the selection
    this.tool = "pan";
    this.on = { density: false, shapes: true };
    this.chosen = ALL;
    this.build(parent.querySelector(".avs-mount") ?? parent);
    this.watch = new ResizeObserver(() => this.resize());
    this.watch.observe(this.stage);
    this.follow = ({ detail }) => this.linked(detail);
    window.addEventListener(VIEW_EVENT, this.follow);
  }

  close() {
    this.watch.disconnect();
    window.removeEventListener(VIEW_EVENT, this.follow);
    clearTimeout(this.waiting);
    cancelAnimationFrame(this.frame);
  }

  build(mount) {
    this.buttons = {};
    const tool = (name, label) => this.button(name, label, () => this.use(name));
    const zoom = (name, label, factor) => this.button(name, label, () => this.zoom(factor));
    this.status = element("span", { class: "status", "aria-live": "polite" });
    this.bar = element("div", { class: "bar", role: "toolbar", "aria-label": "Map tools" },
      element("span", { class: "group" }, tool("pan", "Move the map by dragging"),
        tool("lasso", "Lasso: draw around scenarios (or drag with Shift)"), tool("box", "Box: drag a rectangle")),
      element("span", { class: "group" }, zoom("plus", "Zoom in (+)", 1.6), zoom("minus", "Zoom out (-)", 1 / 1.6),
        this.button("fit", "Show everything (0, or double click)", () => this.fit())),
      this.button("clear", "Clear the selection (Esc)", () => this.select(null)),
      this.toggle("density", "Difference", "Where there is more of Q (orange) and more of P (blue): density of Q less P"),
      this.toggle("shapes", "Outlines", "Lines around the regions' scenarios"),
      this.status,
      element("span", { class: "group" }, this.button("png", "Save as picture (PNG)", () => save(this, "png"), "PNG"),
        this.button("svg", "Save for print (SVG)", () => save(this, "svg"), "SVG"),
        this.button("full", "Full screen", () => this.fullscreen())));
    [this.under, this.canvas] = [element("canvas", { class: "under" }), element("canvas", { class: "points" })];
    this.overlay = element("svg:svg", { "aria-hidden": "true" });
    this.hint = element("div", { class: "hint", role: "status" });
    this.stage = element("div", { class: "stage", tabindex: "0", role: "application" },
      this.under, this.canvas, this.overlay, this.hint);
    this.legend = element("div", { class: "legend" });
    this.root = element("div", { class: "map" }, this.bar, this.stage, this.legend);
    mount.replaceChildren(this.root);
    this.stage.onpointerdown = (event) => this.down(event);
    this.stage.onpointermove = (event) => this.move(event);
    this.stage.onpointerup = (event) => this.up(event);
    this.stage.onpointercancel = () => { this.drag = null; this.draw(); };
    this.stage.onpointerleave = () => this.point(null);
    this.stage.ondblclick = () => { clearTimeout(this.waiting); this.fit(); };
    this.stage.onkeydown = (event) => this.key(event);
    this.stage.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.use("pan");
  }

  button(name, label, onclick, text = "") {
    const made = element("button", { type: "button", title: label, "aria-label": label, "data-do": name });
    if (text) made.textContent = text;
    else made.append(element("svg:svg", { viewBox: "0 0 24 24" }, element("svg:path", { d: ICONS[name] })));
    made.onclick = onclick;
    return (this.buttons[name] = made);
  }

  toggle(name, text, label) {
    const made = this.button(name, label, () => {
      this.on[name] = !this.on[name];
      this.show(null);
      this.tell.setStateValue("layers", { ...this.on });
    }, text);
    made.classList.add("word");
    return made;
  }

  use(tool) {
    this.tool = tool;
    for (const name of ["pan", "lasso", "box"]) this.buttons[name].setAttribute("aria-pressed", name === tool);
    this.stage.dataset.tool = tool;
  }

  // What is shown ---------------------------------------------------------------------------------------------------

  show(data) {
    const start = performance.now();
    if (data && data !== this.data) this.take(data);
    if (!this.points) return;
    const { head } = this.points, style = getComputedStyle(this.host);
    this.theme = luminance(style.getPropertyValue("--st-background-color") || "#ffffff") < 0.4 ? "dark" : "light";
    this.root.dataset.theme = this.theme;
    this.stage.style.height = `${head.height ?? 620}px`;
    this.stage.setAttribute("aria-label", `${head.alt ?? "Map of scenarios"}. Keys: plus, minus and 0 zoom, arrows `
      + "move, Escape clears the selection.");
    const [low, high] = head.pq[this.theme];
    this.heat = this.points.grid && this.on.density
      ? heat(this.points.grid, head.density.bins, rgb(low), rgb(high)) : null;
    this.paint = this.paintOf(head.colour); // under the density difference all points are grey
    for (const [name, there] of [["density", this.points.grid], ["shapes", head.shapes.length]]) {
      this.buttons[name].hidden = !there;
      this.buttons[name].setAttribute("aria-pressed", this.on[name]);
    }
    this.describe(head);
    this.resize(true);
    if (data) this.stage.dataset.arrivedMs = (performance.now() - start).toFixed(1); // decoded, drawn and labelled
  }

  take(data) {
    const before = this.points?.head;
    this.data = data;
    this.points = read(data);
    const { head, blocks } = this.points;
    if (before?.space !== head.space || before?.colour.title !== head.colour.title) this.chosen = ALL;
    if ("layers" in head && JSON.stringify(head.layers) !== JSON.stringify(before?.layers)) this.on = { ...head.layers };
    if ("selection" in head && JSON.stringify(head.selection) !== this.given) {
      this.lines = {};
      if (head.selection) this.lines[head.selection.space] = pairs(head.selection.corners);
    }
    this.given = JSON.stringify(head.selection);
    this.code = blocks.colour;
    this.stage.dataset.n = head.n;
  }

  paintOf(colour) {
    const table = new Uint16Array(4 * 256), palette = colour[this.theme];
    const grey = GREY[this.theme];
    if (colour.kind === "scale") {
      for (let k = 0; k < MISSING; k++) table.set([k, 0, 0, 1], 4 * k);
    } else {
      palette.forEach((hex, k) => {
        const weight = colour.weight[k];
        table.set([...rgb(hex).map((v) => v * weight), weight], 4 * k);
      });
    }
    return { table, code: this.code, chosen: this.heat ? NONE : this.chosen, highlight: this.points.blocks.highlight ?? null,
      ramp: colour.kind === "scale" ? ramp(palette) : null, grey };
  }

  describe(head) {
    this.status.textContent = head.n === head.total ? `${number(head.n)} of ${number(head.total)} shown`
      : `${number(head.n)} of ${number(head.total)}${head.part ? ` · ${head.part}` : ""}`;
    this.legend.replaceChildren(...legendOf(head, this.theme, this.chosen, Boolean(this.heat), (k) => {
      this.chosen = this.chosen === k ? ALL : k;
      this.show(null);
      this.legend.querySelectorAll(".chip")[k]?.focus();
    }));
  }

  // Where things are --------------------------------------------------------------------------------------------------

  get space() { return this.points.head.space; }

  get view() {
    return (this.views[this.space] ??= this.whole());
  }

  whole() {
    const [x0, y0, x1, y1] = this.points.head.bounds, room = 28;
    const scale = Math.min((this.width - room) / Math.max(x1 - x0, 1), (this.height - room) / Math.max(y1 - y0, 1));
    return { x: (x0 + x1) / 2, y: (y0 + y1) / 2, scale: Math.max(scale, 1e-4), fitted: true };
  }

  toScreen(x, y) {
    const { view } = this;
    return [(x - view.x) * view.scale + this.width / 2, (view.y - y) * view.scale + this.height / 2];
  }

  toGrid(px, py) {
    const { view } = this;
    return [(px - this.width / 2) / view.scale + view.x, view.y - (py - this.height / 2) / view.scale];
  }

  fit() { this.turn(this.whole()); }

  zoom(factor, px = this.width / 2, py = this.height / 2) {
    const { view } = this, [x, y] = this.toGrid(px, py), least = this.whole().scale / 4;
    const scale = Math.min(Math.max(view.scale * factor, least), 4);
    this.turn({ x: x - (px - this.width / 2) / scale, y: y + (py - this.height / 2) / scale, scale });
  }

  shift(dx, dy) {
    const { view } = this;
    this.turn({ x: view.x - dx / view.scale, y: view.y + dy / view.scale, scale: view.scale });
  }

  turn(view) {
    this.views[this.space] = view;
    const { link } = this.points.head;
    if (link) window.dispatchEvent(new CustomEvent(VIEW_EVENT, { detail: { link, from: this, space: this.space, view } }));
    this.draw();
  }

  linked({ link, from, space, view }) {
    if (from === this || !this.points || this.points.head.link !== link || space !== this.space) return;
    this.views[space] = { ...view };
    this.draw();
  }

  // Drawing -----------------------------------------------------------------------------------------------------------

  resize(now = false) {
    if (!this.points || !this.stage.clientWidth) return;
    const [width, height] = [this.stage.clientWidth, this.stage.clientHeight];
    const changed = width !== this.width || height !== this.height;
    if (changed) {
      Object.assign(this, { width, height, ratio: Math.min(window.devicePixelRatio || 1, 2) });
      for (const canvas of [this.under, this.canvas]) {
        canvas.width = Math.round(width * this.ratio);
        canvas.height = Math.round(height * this.ratio);
      }
      this.sums = new Sums(this.canvas.width, this.canvas.height);
      this.image = new ImageData(this.canvas.width, this.canvas.height);
      for (const [space, view] of Object.entries(this.views)) if (view.fitted) delete this.views[space];
    }
    if (now) this.render();
    else if (changed) this.draw();
  }

  draw() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.render());
  }

  render() {
    cancelAnimationFrame(this.frame);
    if (!this.points || !this.sums) return;
    const start = performance.now(), { ratio, view } = this;
    const [left, top] = this.toScreen(0, 0).map((v) => v * ratio);
    const place = { kx: view.scale * ratio, x0: left, ky: -view.scale * ratio, y0: top };
    const spot = disc(this.spotRadius() * ratio);
    this.sums.clear();
    accumulate(this.sums, this.points, place, spot, this.paint);
    develop(this.sums, this.image, this.paint.ramp, this.paint.grey, 46);
    this.canvas.getContext("2d").putImageData(this.image, 0, 0);
    this.renderHeat();
    this.renderLines();
    this.stage.dataset.drawMs = (performance.now() - start).toFixed(1);
    this.stage.dataset.draws = Number(this.stage.dataset.draws ?? 0) + 1;
    this.stage.dataset.view = [view.x, view.y, view.scale].map((v) => v.toPrecision(6)).join(" ");
  }

  spotRadius() {
    const [x0, y1] = this.toGrid(0, 0), [x1, y0] = this.toGrid(this.width, this.height), { x, y, n } = this.points;
    let inSight = 0;
    for (let i = 0; i < n; i++) if (x[i] >= x0 && x[i] <= x1 && y[i] >= y0 && y[i] <= y1) inSight++;
    return SPOTS.find(([most]) => inSight <= most)[1];
  }

  renderHeat() {
    const context = this.under.getContext("2d");
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    if (!this.heat) return;
    const [x0, y0, x1, y1] = this.points.head.density.extent, [left, top] = this.toScreen(x0, y1);
    context.imageSmoothingEnabled = true;
    context.imageSmoothingQuality = "high";
    context.drawImage(this.heat, left, top, (x1 - x0) * this.view.scale, (y1 - y0) * this.view.scale);
  }

  renderLines() {
    const made = [], { shapes } = this.points.head, screen = (p) => this.toScreen(...p);
    const line = this.drag?.line ? this.drag.line : this.lines[this.space];
    if (line?.length > 1) {
      const path = pathOf(line.map(screen)), frame = `M0 0H${this.width}V${this.height}H0Z`;
      made.push(element("svg:path", { class: "veil", d: this.drag?.line ? "" : frame + path }),
        element("svg:path", { class: "selection", d: path }));
    }
    if (this.on.shapes) {
      const names = [];
      for (const { name, rings, labels } of shapes) {
        const lines = rings.map((ring) => pairs(ring).map(screen)), d = lines.map(pathOf).join("");
        made.push(element("svg:path", { class: "halo", d }), element("svg:path", { class: "outline", d }));
        labels.forEach((label, i) => names.push([name, ...(lines[i] ? above(lines[i]) : screen(label))]));
      }
      for (const [name, x, y] of names) {
        made.push(element("svg:text", { class: "label", x: x.toFixed(1), y: y.toFixed(1) }, name));
      }
    }
    this.overlay.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.overlay.replaceChildren(...made);
    this.buttons.clear.disabled = !this.lines[this.space];
  }

  // The reader's hand ---------------------------------------------------------------------------------------------------

  where(event) {
    const box = this.stage.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  down(event) {
    if (event.button || !this.points) return;
    this.stage.focus({ preventScroll: true });
    this.stage.setPointerCapture(event.pointerId);
    const at = this.where(event), tool = event.shiftKey && this.tool === "pan" ? "lasso" : this.tool;
    this.drag = { tool, at, from: at, moved: false, line: null };
    this.point(null);
  }

  move(event) {
    const at = this.where(event), { drag } = this;
    if (!drag) {
      this.pointer = at;
      this.looking ??= requestAnimationFrame(() => { this.looking = null; this.point(this.pointer); });
      return;
    }
    drag.moved ||= Math.hypot(at[0] - drag.from[0], at[1] - drag.from[1]) > 3;
    if (!drag.moved) return;
    if (drag.tool === "pan") this.shift(at[0] - drag.at[0], at[1] - drag.at[1]);
    else if (drag.tool === "box") {
      const [[x0, y0], [x1, y1]] = [drag.from, at].map((p) => this.toGrid(...p));
      drag.line = [[x0, y0], [x1, y0], [x1, y1], [x0, y1]];
      this.draw();
    } else {
      drag.line ??= [this.toGrid(...drag.from)];
      drag.line.push(this.toGrid(...at));
      this.draw();
    }
    drag.at = at;
  }

  up(event) {
    const { drag } = this;
    this.drag = null;
    if (!drag) return;
    if (drag.line) {
      const line = simplify(drag.line, MOST_CORNERS), room = area(line) * this.view.scale ** 2;
      if (line.length > 2 && room > 16) this.select(line);
      else this.draw();
    } else if (!drag.moved) this.click(this.where(event));
  }

  click(at) {
    const found = this.nearest(at);
    clearTimeout(this.waiting);
    if (found < 0) return;
    this.waiting = setTimeout(() => this.tell.setTriggerValue("clicked", found), DOUBLE_MS);
  }

  select(line) {
    this.drag = null;
    const had = Object.keys(this.lines).length > 0;
    this.lines = line ? { [this.space]: line } : {};
    this.draw();
    if (line || had) this.tell.setStateValue("selection", line ? { space: this.space, corners: line.flat() } : null);
  }

  nearest([px, py]) {
    const [gx, gy] = this.toGrid(px, py), { x, y, n } = this.points;
    let best = (NEAR / this.view.scale) ** 2, found = -1;
    for (let i = 0; i < n; i++) {
      const off = (x[i] - gx) ** 2 + (y[i] - gy) ** 2;
      if (off < best) [best, found] = [off, i];
    }
    return found;
  }

  point(at) {
    const found = at && this.points && !this.drag ? this.nearest(at) : -1;
    this.stage.classList.toggle("on-point", found >= 0);
    this.hint.classList.toggle("seen", found >= 0);
    if (found < 0) return;
    const { head, blocks } = this.points;
    const lines = head.words.map(({ title, names }, i) => [title, names[blocks[`word${i}`][found]] ?? "-"]);
    lines.push([head.colour.title, this.valueOf(found)]);
    const told = new Map(lines.filter(([, value]) => value !== null));
    this.hint.replaceChildren(...[...told].map(([title, value]) => element("div", {},
      element("span", { class: "name" }, `${title} `), value)), element("div", { class: "name" }, "Click to open"));
    const [x, y] = this.toScreen(this.points.x[found], this.points.y[found]);
    this.hint.style.left = `${Math.min(Math.max(x + 12, 0), this.width - this.hint.offsetWidth - 4)}px`;
    this.hint.style.top = `${y + 14 + this.hint.offsetHeight > this.height ? y - 12 - this.hint.offsetHeight : y + 14}px`;
  }

  valueOf(i) {
    const { colour } = this.points.head, code = this.code[i];
    if (code === MISSING) return "no value";
    if (colour.kind !== "scale") return colour.names[code] ?? null;
    const value = colour.low + (code / (MISSING - 1)) * (colour.high - colour.low);
    const shown = Number((colour.log ? 2 ** value : value).toPrecision(3));
    return `about ${number(shown)}${colour.unit ? ` ${colour.unit}` : ""}`;
  }

  wheel(event) {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    this.zoom(Math.exp(-Math.min(Math.max(event.deltaY * lines, -240), 240) * 0.0022), ...this.where(event));
  }

  key(event) {
    const far = 60, moves = { ArrowLeft: [far, 0], ArrowRight: [-far, 0], ArrowUp: [0, far], ArrowDown: [0, -far] };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (moves[event.key]) this.shift(...moves[event.key]);
    else if (event.key === "+" || event.key === "=") this.zoom(1.4);
    else if (event.key === "-") this.zoom(1 / 1.4);
    else if (event.key === "0") this.fit();
    else if (event.key === "Escape") this.select(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  fullscreen() {
    if (document.fullscreenElement) document.exitFullscreen();
    else this.root.requestFullscreen?.();
  }
}
