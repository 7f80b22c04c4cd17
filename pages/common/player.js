// Bird's-eye player: one scene, or two on one clock. All of playback runs here; the server is not asked for anything.
// The message is made by avshift_core/scenario/playback.py; text in it is only ever set as text, never as HTML.

const RATES = [0.25, 0.5, 1, 2, 4];
const TRAIL_S = 3;
const BRIDGE_S = 1.05; // two steps further apart in time say nothing about the time between (as in scenario/view.py)
const LEFT = 44, RIGHT = 92, STRIP = 90, GAP = 12; // pixels of the strips
const REACH_M = { height: 48, width: 76 }; // what a picture shows at least in one direction and at most in the other
const ZOOMS = [0.25, 8];
const ROAD_NAMES = { lane_center: "lane centre", lane_boundary: "lane boundary", road_edge: "road edge",
  crosswalk: "crosswalk", stop_line: "stop line", work_zone: "work zone" };
const ICONS = {
  play: "M7 5v14l12-7z", pause: "M6 5h4v14H6zM14 5h4v14h-4z", back: "M6 5h2.5v14H6zM19 5v14L9.5 12z",
  forward: "M15.5 5H18v14h-2.5zM5 5v14l9.5-7z", tight: "M12 3v4M12 17v4M3 12h4M17 12h4M12 8a4 4 0 1 0 .01 0z",
  plus: "M12 5v14M5 12h14", minus: "M5 12h14", fit: "M4 9V4h5M15 4h5v5M20 15v5h-5M9 20H4v-5",
  picture: "M12 4v11M7 11l5 5 5-5M5 20h14", full: "M4 9V4h5M20 15v5h-5M4 4l6 6M20 20l-6-6",
};
const FILLED = new Set(["play", "pause", "back", "forward"]);
const players = new WeakMap();

export default function (component) {
  const { data, parentElement } = component;
  let player = players.get(parentElement);
  if (!player) {
    player = new Player(parentElement);
    players.set(parentElement, player);
  }
  player.show(data);
  return () => { player.close(); players.delete(parentElement); };
}

// Elements ----------------------------------------------------------------------------------------------------------

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", ICONS[name]);
  if (FILLED.has(name)) path.setAttribute("class", "filled");
  svg.append(path);
  return svg;
}

function button(name, label, onclick, ...children) {
  const made = element("button", { type: "button", title: label, "aria-label": label, "data-do": name }, ...children);
  made.onclick = onclick;
  return made;
}

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

// Numbers of a message ----------------------------------------------------------------------------------------------

const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const int16 = (text) => new Int16Array(bytes(text).buffer);
const int32 = (text) => new Int32Array(bytes(text).buffer);

function spread(values, mask, count, unit, angle) {
  // Only valid states are sent: (v, 3) whole numbers -> (count, 3) metres and radians, NaN where not valid.
  const whole = int16(values), bit = bytes(mask), out = new Float32Array(3 * count).fill(NaN);
  for (let i = 0, k = 0; i < count; i++) {
    if (!(bit[i >> 3] & (1 << (i & 7)))) continue;
    out[3 * i] = whole[k] * unit;
    out[3 * i + 1] = whole[k + 1] * unit;
    out[3 * i + 2] = whole[k + 2] / angle;
    k += 3;
  }
  return out;
}

class Scene {
  constructor(message, { angle, legend, types, on_foot: onFoot }) {
    Object.assign(this, message);
    const { T, A, unit_m: unit } = message, names = message.kind.map((kind) => types[kind]);
    this.t = Float64Array.from(int32(message.t_ms), (ms) => ms / 1000);
    this.end = this.t[T - 1];
    this.ego = spread(message.ego, message.ego_valid, T, unit, angle);
    this.agents = spread(message.agents, message.agents_valid, A * T, unit, angle);
    this.series = Object.fromEntries(Object.entries(message.series).map(([name, text]) => [name, int16(text)]));
    const group = (name) => legend.findIndex((entry) => entry.types.includes(name));
    this.groups = names.map((name) => (group(name) < 0 ? legend.length - 1 : group(name)));
    this.onFoot = names.map((name) => onFoot.includes(name));
    this.roads = this.roadPaths(message.road, unit);
    this.box = this.bounds();
  }

  roadPaths(road, unit) {
    const xy = int16(road.xy), paths = {};
    road.kind.forEach((kind, j) => {
      const path = (paths[kind] ??= new Path2D());
      for (let i = road.start[j]; i < road.start[j + 1]; i++) {
        path[i === road.start[j] ? "moveTo" : "lineTo"](xy[2 * i] * unit, xy[2 * i + 1] * unit);
      }
    });
    return paths;
  }

  bounds() {
    // Around the ego's way, with 20 m of its surroundings.
    let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
    for (let i = 0; i < this.T; i++) {
      const x = this.ego[3 * i], y = this.ego[3 * i + 1];
      if (Number.isNaN(x)) continue;
      left = Math.min(left, x); right = Math.max(right, x); low = Math.min(low, y); high = Math.max(high, y);
    }
    if (left > right) [left, right, low, high] = [0, 0, 0, 0];
    return { x: (left + right) / 2, y: (low + high) / 2, width: right - left + 40, height: high - low + 40 };
  }

  at(time) {
    // The step at or before a time, and how far towards the next one.
    const t = this.t;
    let low = 0, high = this.T - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (t[middle] <= time + 1e-6) low = middle; else high = middle - 1;
    }
    const span = low < this.T - 1 ? t[low + 1] - t[low] : 0;
    return { step: low, part: span > 0 ? clamp((time - t[low]) / span, 0, 1) : 0, bridge: span <= BRIDGE_S };
  }

  pose(states, offset, now) {
    // Between two steps in which somebody is seen the way is straight; else where it is seen at the nearer one.
    const i = 3 * (offset + now.step), next = now.step < this.T - 1 ? i + 3 : i;
    const seen = !Number.isNaN(states[i]), then = !Number.isNaN(states[next]), f = now.part;
    if (seen && then && now.bridge) {
      const turn = states[next + 2] - states[i + 2];
      return { x: states[i] + f * (states[next] - states[i]), y: states[i + 1] + f * (states[next + 1] - states[i + 1]),
        heading: states[i + 2] + f * Math.atan2(Math.sin(turn), Math.cos(turn)) };
    }
    const k = f < 0.5 ? i : next;
    return Number.isNaN(states[k]) ? null : { x: states[k], y: states[k + 1], heading: states[k + 2] };
  }

  egoPose(now) {
    const pose = this.pose(this.ego, 0, now);
    return pose ?? this.lastEgo(now.step);
  }

  lastEgo(step) {
    for (let i = step; i >= 0; i--) {
      if (!Number.isNaN(this.ego[3 * i])) {
        return { x: this.ego[3 * i], y: this.ego[3 * i + 1], heading: this.ego[3 * i + 2], gone: true };
      }
    }
    return { x: 0, y: 0, heading: 0, gone: true };
  }

  tightest() {
    // Time of the smallest time to collision; where there is none, of the smallest gap.
    for (const values of [this.series.ttc, this.series.gap]) {
      let best = -1;
      values.forEach((value, i) => { if (value >= 0 && (best < 0 || value < values[best])) best = i; });
      if (best >= 0) return this.t[best];
    }
    return 0;
  }
}

// The player --------------------------------------------------------------------------------------------------------

class Player {
  constructor(parent) {
    this.time = 0; this.rate = 1; this.zoom = 1; this.pan = { x: 0, y: 0 };
    this.playing = false; this.trails = true; this.follow = true; this.loop = false;
    this.scenes = []; this.views = [];
    this.root = element("div", { class: "avs-player", tabindex: "0", role: "group",
      "aria-label": "Scenario player. Space plays and pauses, the arrow keys step." });
    this.build();
    (parent.querySelector(".avs-mount") ?? parent).append(this.root);
    this.sizes = new ResizeObserver(() => this.resize());
    this.sizes.observe(this.root);
  }

  close() {
    cancelAnimationFrame(this.frame);
    this.sizes.disconnect();
    this.root.remove();
  }

  build() {
    this.stage = element("div", { class: "stage" });
    this.legend = element("div", { class: "legend" });
    this.slider = element("input", { type: "range", min: "0", step: "0.001", class: "time", "aria-label": "Time" });
    this.slider.oninput = () => this.seek(Number(this.slider.value));
    this.strips = element("canvas", { class: "strips", role: "img",
      "aria-label": "Ego speed, smallest gap and smallest time to collision over time" });
    this.message = element("div", { class: "hint", role: "status" });
    this.root.append(this.stage, this.legend, this.controls(), this.slider, this.strips, element("div", { class: "keys" },
      "Space plays and pauses \u00b7 \u2190 \u2192 one step \u00b7 Home, End \u00b7 + \u2212 zoom \u00b7 drag moves the picture \u00b7 " +
      "after a click into it the wheel zooms"), this.message);
    this.dragTime();
    this.root.onkeydown = (event) => this.key(event);
    this.root.onclick = (event) => { if (!event.target.closest("button, input, select")) this.root.focus(); };
  }

  controls() {
    this.playButton = button("play", "Play", () => this.toggle(), icon("play"));
    this.playButton.classList.add("main");
    this.clock = element("span", { class: "clock" });
    this.rates = element("div", { class: "choice", role: "group", "aria-label": "Speed of playback" },
      ...RATES.map((rate) => button(`rate-${rate}`, `Play at ${rate} times the real speed`, () => this.setRate(rate),
        `${rate}\u00d7`)));
    this.cameras = element("div", { class: "choice", role: "group", "aria-label": "Camera" },
      button("follow", "The picture moves with the ego", () => this.setCamera(true), "Follow ego"),
      button("fixed", "The picture stands still and shows all of the ego's way", () => this.setCamera(false), "Fixed"));
    const part = (...items) => element("div", { class: "part" }, ...items);
    this.trailButton = button("trails", `Ways of the last ${TRAIL_S} seconds`, () => this.setTrails(!this.trails), "Trails");
    this.loopButton = button("loop", "Start again at the end", () => this.setLoop(!this.loop), "Loop");
    return element("div", { class: "controls" },
      part(button("back", "One step back", () => this.step(-1), icon("back")), this.playButton,
        button("forward", "One step forward", () => this.step(1), icon("forward")), this.clock),
      part(this.rates),
      part(button("tight", "Go to the tightest moment: smallest time to collision, or smallest gap",
        () => this.seek(this.scenes[0].tightest()), icon("tight"), element("span", {}, "Tightest moment"))),
      part(this.trailButton, this.loopButton), part(this.cameras),
      part(button("out", "Zoom out", () => this.setZoom(this.zoom / 1.25), icon("minus")),
        button("fit", "Original view", () => this.setCamera(this.follow), icon("fit")),
        button("in", "Zoom in", () => this.setZoom(this.zoom * 1.25), icon("plus"))),
      part(button("picture", "Save a picture (PNG)", () => this.snapshot(), icon("picture"), element("span", {}, "PNG")),
        button("full", "Full screen", () => this.fullScreen(), icon("full"))));
  }

  show(data) {
    const text = JSON.stringify(data);
    this.palette = this.colours(data);
    if (text !== this.shown) {
      const same = this.scenes[0]?.id === data.scenes[0]?.id;
      this.shown = text; this.data = data;
      this.scenes = data.scenes.map((scene) => new Scene(scene, data));
      this.duration = data.duration_ms / 1000;
      if (!same) { this.time = 0; this.pause(); this.zoom = 1; this.pan = { x: 0, y: 0 }; }
      this.time = Math.min(this.time, this.duration);
      this.slider.max = String(this.duration);
      this.buildStage();
      this.buildLegend();
    }
    this.root.style.setProperty("--avs-height", `${data.height}px`);
    this.resize();
    this.marks();
  }

  buildStage() {
    this.stage.classList.toggle("pair", this.scenes.length > 1);
    this.views = this.scenes.map((scene, i) => {
      const canvas = element("canvas", { class: "view", role: "img" });
      canvas.setAttribute("aria-label", `Bird's-eye view of ${scene.title}, ${scene.A} road users around the ego, ` +
        `${scene.end.toFixed(1)} seconds`);
      const caption = element("figcaption", {});
      if (scene.tag) {
        const tag = element("span", { class: "tag" }, scene.tag);
        caption.append(tag);
      }
      const words = element("span", { class: "words" }, element("span", { class: "title" }, scene.title));
      if (scene.note) words.append(element("span", { class: "note" }, scene.note));
      caption.append(words);
      if (this.scenes.length > 1) caption.append(element("span", { class: i ? "line dashed" : "line" }));
      const figure = element("figure", { class: "scene" }, caption, canvas);
      const view = { scene, canvas, figure, caption, line: caption.querySelector(".line"),
        tag: caption.querySelector(".tag") };
      this.pointer(canvas);
      return view;
    });
    this.stage.replaceChildren(...this.views.map((view) => view.figure));
  }

  buildLegend() {
    const used = new Set([0, ...this.scenes.flatMap((scene) => scene.groups)]);
    const entries = this.data.legend.map((entry, i) => [entry, i]).filter(([, i]) => used.has(i)).map(([entry]) => {
      return element("span", {}, element("i", { "data-group": String(this.data.legend.indexOf(entry)) }), entry.name);
    });
    const kinds = Object.keys(ROAD_NAMES).filter((kind) => this.scenes.some((scene) => scene.roads[kind]));
    entries.push(...kinds.map((kind) => element("span", {}, element("i", { class: `road ${kind}` }), ROAD_NAMES[kind])));
    const typical = this.scenes.some((scene) => scene.derived.some((name) => name.endsWith("_size")));
    if (typical) entries.push(element("span", { class: "quiet" }, "Typical sizes where the log has none."));
    if (!kinds.length) entries.push(element("span", { class: "quiet" }, "The log has no map."));
    this.legend.replaceChildren(...entries);
  }

  colours(data) {
    const style = getComputedStyle(this.root);
    const value = (name, other) => style.getPropertyValue(name).trim() || other;
    const text = value("--st-text-color", "#31333f"), ground = value("--st-background-color", "#ffffff");
    const [r, g, b] = rgb(ground), dark = 0.299 * r + 0.587 * g + 0.114 * b < 128;
    const lift = (color) => (dark ? mixed(color, "#ffffff", 0.22) : color);
    this.root.classList.toggle("dark", dark);
    return { text, ground, dark, lift, red: value("--st-red-color", "#cc3311"), font: style.fontFamily,
      panel: mixed(ground, text, dark ? 0.05 : 0.03), asphalt: mixed(ground, text, dark ? 0.11 : 0.085),
      line: mixed(ground, text, 0.42), faint: mixed(ground, text, 0.3), grid: mixed(ground, text, 0.12),
      quiet: mixed(ground, text, 0.62), groups: data.legend.map((entry) => lift(entry.color)),
      tags: Object.fromEntries(Object.entries(data.tags).map(([tag, color]) => [tag, lift(color)])) };
  }

  lineColour(i) {
    return this.palette.tags[this.scenes[i].tag] ?? (i ? this.palette.quiet : this.palette.text);
  }

  // Clock and controls ----------------------------------------------------------------------------------------------

  toggle() { if (this.playing) this.pause(); else this.play(); }

  play() {
    if (this.time >= this.duration - 1e-6) this.time = 0;
    this.playing = true;
    let last = performance.now();
    const turn = (now) => {
      if (!this.playing) return;
      this.time += this.rate * Math.min((now - last) / 1000, 0.25);
      last = now;
      if (this.time >= this.duration) {
        if (this.loop) this.time %= Math.max(this.duration, 1e-3); else { this.time = this.duration; this.pause(); }
      }
      this.draw();
      if (this.playing) this.frame = requestAnimationFrame(turn);
    };
    this.frame = requestAnimationFrame(turn);
    this.marks();
  }

  pause() {
    this.playing = false;
    cancelAnimationFrame(this.frame);
    this.marks();
  }

  seek(time) {
    this.time = clamp(time, 0, this.duration);
    this.draw();
  }

  step(way) {
    // Steps of the first scene; after its end those of the second.
    this.pause();
    const steps = [...this.scenes[0].t, ...(this.scenes[1]?.t ?? []).filter((t) => t > this.scenes[0].end + 1e-6)];
    const next = way > 0 ? steps.find((t) => t > this.time + 1e-6) : steps.findLast((t) => t < this.time - 1e-6);
    this.seek(next ?? (way > 0 ? this.duration : 0));
  }

  setRate(rate) { this.rate = rate; this.marks(); }
  setTrails(on) { this.trails = on; this.marks(); this.draw(); }
  setLoop(on) { this.loop = on; this.marks(); }
  setCamera(follow) { this.follow = follow; this.zoom = 1; this.pan = { x: 0, y: 0 }; this.marks(); this.draw(); }
  setZoom(zoom) { this.zoom = clamp(zoom, ...ZOOMS); this.draw(); }

  marks() {
    // What the buttons show.
    if (!this.data) return;
    const press = (item, on) => item.setAttribute("aria-pressed", String(on));
    const label = this.playing ? "Pause" : "Play";
    if (this.playButton.title !== label) {
      this.playButton.title = label;
      this.playButton.setAttribute("aria-label", label);
      this.playButton.replaceChildren(icon(this.playing ? "pause" : "play"));
    }
    [...this.rates.children].forEach((item, i) => press(item, RATES[i] === this.rate));
    press(this.trailButton, this.trails);
    press(this.loopButton, this.loop);
    press(this.cameras.children[0], this.follow);
    press(this.cameras.children[1], !this.follow);
    Object.assign(this.root.dataset, { playing: this.playing, rate: this.rate, camera: this.follow ? "ego" : "fixed",
      trails: this.trails });
  }

  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const onButton = event.target.tagName === "BUTTON";
    const action = { ArrowLeft: () => this.step(-1), ArrowRight: () => this.step(1), Home: () => this.seek(0),
      End: () => this.seek(this.duration), "+": () => this.setZoom(this.zoom * 1.25),
      "=": () => this.setZoom(this.zoom * 1.25), "-": () => this.setZoom(this.zoom / 1.25),
      " ": onButton ? null : () => this.toggle() }[event.key];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  }

  pointer(canvas) {
    let last = null;
    canvas.onpointerdown = (event) => {
      last = [event.clientX, event.clientY];
      canvas.setPointerCapture(event.pointerId);
    };
    canvas.onpointermove = (event) => {
      if (!last) return;
      this.pan.x += event.clientX - last[0];
      this.pan.y += event.clientY - last[1];
      last = [event.clientX, event.clientY];
      this.draw();
    };
    canvas.onpointerup = canvas.onpointercancel = () => { last = null; };
    canvas.ondblclick = () => this.setCamera(this.follow);
    canvas.addEventListener("wheel", (event) => {
      // The wheel belongs to the page until somebody has clicked into the player.
      if (!this.root.matches(":focus-within") && !event.ctrlKey) {
        this.say("Click into the picture first, then the wheel zooms.");
        return;
      }
      event.preventDefault();
      const before = this.zoom, edge = canvas.getBoundingClientRect();
      this.zoom = clamp(before * Math.exp(-event.deltaY / 500), ...ZOOMS);
      const factor = this.zoom / before - 1;
      this.pan.x -= (event.clientX - edge.x - edge.width / 2 - this.pan.x) * factor;
      this.pan.y -= (event.clientY - edge.y - edge.height / 2 - this.pan.y) * factor;
      this.draw();
    }, { passive: false });
  }

  dragTime() {
    let held = false;
    const seek = (event) => {
      const edge = this.strips.getBoundingClientRect();
      this.seek((event.clientX - edge.x - LEFT) / (edge.width - LEFT - RIGHT) * this.duration);
    };
    this.strips.onpointerdown = (event) => { held = true; this.strips.setPointerCapture(event.pointerId); seek(event); };
    this.strips.onpointermove = (event) => { if (held) seek(event); };
    this.strips.onpointerup = this.strips.onpointercancel = () => { held = false; };
  }

  say(text) {
    this.message.textContent = text;
    this.message.classList.add("on");
    clearTimeout(this.saying);
    this.saying = setTimeout(() => this.message.classList.remove("on"), 1800);
  }

  fullScreen() {
    if (document.fullscreenElement) document.exitFullscreen();
    else this.root.requestFullscreen?.().catch(() => this.say("This browser does not allow full screen here."));
  }

  // Drawing ---------------------------------------------------------------------------------------------------------

  resize() {
    if (!this.data) return;
    const ratio = window.devicePixelRatio || 1;
    for (const { canvas } of [...this.views, { canvas: this.strips }]) {
      const width = Math.round(canvas.clientWidth * ratio), height = Math.round(canvas.clientHeight * ratio);
      if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
    }
    this.ratio = ratio;
    this.paint();
    if (!this.strips.width) return;
    this.under = drawAxes(this);
    this.draw();
  }

  paint() {
    // Colours of the elements around the canvases.
    this.views.forEach(({ line, tag, scene }, i) => {
      if (line) line.style.color = this.lineColour(i);
      if (tag) tag.style.background = this.palette.tags[scene.tag] ?? this.palette.quiet;
    });
    for (const mark of this.legend.querySelectorAll("[data-group]")) {
      mark.style.background = this.palette.groups[Number(mark.dataset.group)];
    }
  }

  draw() {
    if (!this.data) return;
    const scale = this.scale();
    const counts = this.views.map((view) => drawScene(this, view, scale));
    drawCursor(this);
    this.slider.value = String(this.time);
    this.slider.style.setProperty("--part", `${(100 * this.time) / Math.max(this.duration, 1e-9)}%`);
    this.slider.setAttribute("aria-valuetext", `${this.time.toFixed(1)} of ${this.duration.toFixed(1)} seconds`);
    this.clock.textContent = `${this.time.toFixed(1)} / ${this.duration.toFixed(1)} s`;
    Object.assign(this.root.dataset, { time: this.time.toFixed(3), agents: counts.join(","),
      zoom: this.zoom.toFixed(3) });
  }

  scale() {
    // Pixels a metre, the same in both pictures: boxes stay comparable.
    const base = this.views.map(({ scene, canvas }) => {
      const width = canvas.clientWidth, height = canvas.clientHeight;
      return this.follow ? Math.min(height / REACH_M.height, width / REACH_M.width) : clamp(Math.min(width / scene.box.width, height / scene.box.height), 0.5, 12);
    });
    return Math.min(...base) * this.zoom;
  }

  snapshot() {
    const canvas = compose(this);
    const name = this.scenes.map((scene) => scene.id.replace(/[^\w.-]+/g, "_")).join("_and_");
    canvas.toBlob((blob) => {
      const link = element("a", { download: `${name}_${this.time.toFixed(1)}s.png` });
      link.href = URL.createObjectURL(blob);
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    }, "image/png");
  }
}

// Colours -----------------------------------------------------------------------------------------------------------

const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });

function rgb(color) {
  probe.canvas.width = probe.canvas.height = 1;
  probe.fillStyle = color;
  probe.fillRect(0, 0, 1, 1);
  return probe.getImageData(0, 0, 1, 1).data;
}

function mixed(one, other, part) {
  const a = rgb(one).slice(), b = rgb(other);
  return `rgb(${[0, 1, 2].map((i) => Math.round(a[i] + part * (b[i] - a[i]))).join(" ")})`;
}

// A picture ---------------------------------------------------------------------------------------------------------

function drawScene(player, view, scale) {
  const { scene, canvas, figure } = view, { palette, ratio, time } = player;
  const ctx = canvas.getContext("2d"), now = scene.at(time), ego = scene.egoPose(now);
  const eye = player.follow ? ego : scene.box, width = canvas.width / ratio, height = canvas.height / ratio;
  const centre = { x: width / 2 + player.pan.x, y: height / 2 + player.pan.y };
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.fillStyle = palette.panel;
  ctx.fillRect(0, 0, width, height);
  const s = scale * ratio;
  ctx.setTransform(s, 0, 0, -s, ratio * centre.x - s * eye.x, ratio * centre.y + s * eye.y);
  drawRoad(ctx, scene, palette, scale);
  const users = scene.groups.map((group, a) => [a, group, scene.pose(scene.agents, a * scene.T, now)])
    .filter(([, , pose]) => pose);
  if (player.trails) drawTrails(ctx, scene, users, ego, time, now, palette, scale);
  for (const [a, group, pose] of users) drawUser(ctx, scene, a, palette.groups[group], pose, palette, scale);
  drawEgo(ctx, scene, ego, palette, scale);
  const place = (pose) => ({ x: centre.x + (pose.x - eye.x) * scale, y: centre.y - (pose.y - eye.y) * scale });
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  drawMarks(ctx, player, scene, users, ego, now, place, scale);
  drawScaleBar(ctx, palette, scale, height);
  const ended = time > scene.end + 1e-6;
  label(ctx, palette, `${time.toFixed(1)} s`, 12, 20, { size: 15, weight: 600 });
  if (ended) label(ctx, palette, `ended at ${scene.end.toFixed(1)} s`, width - 12, 20, { align: "right", quiet: true });
  Object.assign(figure.dataset, { time: time.toFixed(3), agents: users.length, ended });
  return users.length;
}

function drawRoad(ctx, scene, palette, scale) {
  const { lane_center: lanes, crosswalk, work_zone: zone, stop_line: stop, road_edge: edge, lane_boundary: side } = scene.roads;
  const stroke = (path, color, pixels, dash = []) => {
    if (!path) return;
    ctx.strokeStyle = color;
    ctx.lineWidth = pixels / scale;
    ctx.setLineDash(dash.map((length) => length / scale));
    ctx.stroke(path);
    ctx.setLineDash([]);
  };
  ctx.lineJoin = "round";
  ctx.lineCap = "butt";
  stroke(lanes, palette.asphalt, 3.7 * scale); // a lane is about 3.7 m wide
  if (crosswalk) {
    ctx.fillStyle = palette.line;
    ctx.globalAlpha = 0.22;
    ctx.fill(crosswalk);
    ctx.globalAlpha = 1;
    stroke(crosswalk, palette.faint, 1);
  }
  stroke(lanes, palette.faint, 1, [1.5, 5]);
  stroke(side, palette.line, 1.2);
  stroke(edge, palette.line, 2.2);
  stroke(stop, palette.text, 3);
  stroke(zone, palette.lift("#E69F00"), 4);
  stroke(zone, palette.panel, 4, [6, 6]);
}

function drawTrails(ctx, scene, users, ego, time, now, palette, scale) {
  const first = scene.at(Math.max(time - TRAIL_S, 0)).step, paths = {};
  const add = (states, offset, pose, color) => {
    const levels = (paths[color] ??= [new Path2D(), new Path2D(), new Path2D()]);
    let level = -1;
    for (let j = first; j <= now.step; j++) {
      const i = 3 * (offset + j);
      if (Number.isNaN(states[i])) { level = -1; continue; }
      const own = clamp(Math.floor((time - scene.t[j]) / TRAIL_S * 3), 0, 2);
      if (level >= 0) levels[level].lineTo(states[i], states[i + 1]);
      if (own !== level) levels[own].moveTo(states[i], states[i + 1]);
      level = own;
    }
    if (level >= 0) levels[level].lineTo(pose.x, pose.y);
  };
  for (const [a, group, pose] of users) add(scene.agents, a * scene.T, pose, palette.groups[group]);
  if (!ego.gone) add(scene.ego, 0, ego, palette.groups[0]);
  ctx.lineCap = ctx.lineJoin = "round";
  for (const [color, levels] of Object.entries(paths)) {
    levels.forEach((path, age) => {
      ctx.globalAlpha = [0.6, 0.36, 0.16][age];
      ctx.strokeStyle = color;
      ctx.lineWidth = [2.2, 1.8, 1.4][age] / scale;
      ctx.stroke(path);
    });
  }
  ctx.globalAlpha = 1;
}

function drawUser(ctx, scene, a, color, pose, palette, scale) {
  const [length, width] = sizeOf(scene, a);
  if (scene.onFoot[a]) return drawPerson(ctx, color, pose, Math.max(length, width, 1.2), palette, scale);
  const least = Math.max(0.5, 3 / scale); // seen even from far
  return drawBox(ctx, color, pose, Math.max(length, least), Math.max(width, least), palette, scale);
}

const sizeOf = (scene, a) => [scene.size_cm[2 * a + 2] / 100, scene.size_cm[2 * a + 3] / 100];

function drawPerson(ctx, color, pose, across, palette, scale) {
  const r = Math.max(across / 2, 2.5 / scale);
  ctx.fillStyle = ctx.strokeStyle = color;
  ctx.lineWidth = Math.max(0.25, 1.5 / scale);
  ctx.beginPath();
  ctx.moveTo(pose.x, pose.y);
  ctx.lineTo(pose.x + 1.9 * r * Math.cos(pose.heading), pose.y + 1.9 * r * Math.sin(pose.heading));
  ctx.stroke();
  ctx.beginPath();
  ctx.arc(pose.x, pose.y, r, 0, 2 * Math.PI);
  ctx.fill();
  ctx.strokeStyle = palette.panel;
  ctx.lineWidth = 1 / scale;
  ctx.stroke();
}

function drawBox(ctx, color, pose, length, width, palette, scale) {
  ctx.save();
  ctx.translate(pose.x, pose.y);
  ctx.rotate(pose.heading);
  ctx.fillStyle = color;
  ctx.strokeStyle = palette.panel;
  ctx.lineWidth = 1 / scale;
  ctx.beginPath();
  ctx.roundRect(-length / 2, -width / 2, length, width, Math.min(0.45, width * 0.22));
  ctx.fill();
  ctx.stroke();
  if (width * scale < 4) return ctx.restore(); // too small for a mark
  ctx.fillStyle = palette.panel; // the mark points ahead
  ctx.globalAlpha *= 0.9;
  const tip = length / 2 - 0.12 * width, depth = Math.min(0.7 * width, 0.5 * length);
  ctx.beginPath();
  ctx.moveTo(tip, 0);
  ctx.lineTo(tip - depth, 0.3 * width);
  ctx.lineTo(tip - depth, -0.3 * width);
  ctx.fill();
  ctx.restore();
}

function drawEgo(ctx, scene, pose, palette, scale) {
  const length = scene.size_cm[0] / 100, width = scene.size_cm[1] / 100;
  const alpha = pose.gone ? 0.35 : 1;
  ctx.strokeStyle = palette.groups[0];
  ctx.lineWidth = 5 / scale;
  ctx.globalAlpha = 0.28 * alpha;
  ctx.save();
  ctx.translate(pose.x, pose.y);
  ctx.rotate(pose.heading);
  ctx.beginPath();
  ctx.roundRect(-length / 2 - 0.5, -width / 2 - 0.5, length + 1, width + 1, 0.8);
  ctx.stroke();
  ctx.restore();
  ctx.globalAlpha = alpha;
  drawBox(ctx, palette.groups[0], pose, length, width, palette, scale);
  ctx.globalAlpha = 1;
}

function drawMarks(ctx, player, scene, users, ego, now, place, scale) {
  // The agent that the category is about, and who is less than the alarm away from a collision.
  const { palette, data } = player, i = now.part < 0.5 || now.step === scene.T - 1 ? now.step : now.step + 1;
  const find = (number) => users.find(([a]) => a === number)?.[2];
  const actor = find(scene.actor), other = find(scene.series.ttc_agent[i]), ttc = scene.series.ttc[i] / 1000;
  if (actor) {
    const at = place(actor);
    outline(ctx, scene, scene.actor, actor, at, scale, palette.text);
    if (scene.actor_name) {
      label(ctx, palette, scene.actor_name, at.x, at.y - Math.max(16, 2.2 * scale), { align: "center", weight: 600 });
    }
  }
  if (other && ttc >= 0 && ttc < data.ttc_alarm_s && !ego.gone) {
    const from = place(ego), to = place(other);
    ctx.strokeStyle = palette.red;
    ctx.lineWidth = 2;
    ctx.setLineDash([5, 4]);
    ctx.beginPath();
    ctx.moveTo(from.x, from.y);
    ctx.lineTo(to.x, to.y);
    ctx.stroke();
    ctx.setLineDash([]);
    outline(ctx, scene, scene.series.ttc_agent[i], other, to, scale, palette.red);
    label(ctx, palette, `TTC ${ttc.toFixed(1)} s`, (from.x + to.x) / 2, Math.max(from.y, to.y) + Math.max(22, 2.4 * scale),
      { align: "center", weight: 700, color: palette.red, size: 13 });
  }
}

function outline(ctx, scene, a, pose, at, scale, color) {
  const [length, width] = sizeOf(scene, a).map((size) => Math.max(size, 1.2) * scale + 6);
  ctx.save();
  ctx.translate(at.x, at.y);
  ctx.rotate(-pose.heading);
  ctx.strokeStyle = color;
  ctx.lineWidth = 1.6;
  ctx.beginPath();
  ctx.roundRect(-length / 2, -width / 2, length, width, 4);
  ctx.stroke();
  ctx.restore();
}

function label(ctx, palette, text, x, y, { align = "left", size = 12, weight = 400, color, quiet = false } = {}) {
  ctx.font = `${weight} ${size}px ${palette.font}`;
  ctx.textAlign = align;
  ctx.textBaseline = "alphabetic";
  if (align === "center") { // never cut off at the edge
    const half = ctx.measureText(text).width / 2 + 6, width = ctx.canvas.width / ctx.getTransform().a;
    x = clamp(x, half, width - half);
  }
  ctx.lineJoin = "round";
  ctx.lineWidth = 3.5;
  ctx.strokeStyle = palette.panel;
  ctx.strokeText(text, x, y);
  ctx.fillStyle = color ?? (quiet ? palette.quiet : palette.text);
  ctx.fillText(text, x, y);
}

function drawScaleBar(ctx, palette, scale, height) {
  const metres = [2, 5, 10, 20, 50, 100, 200].find((length) => length * scale >= 60) ?? 500;
  const x = 12, y = height - 12, end = x + metres * scale;
  ctx.strokeStyle = palette.text;
  ctx.lineWidth = 1.6;
  ctx.beginPath();
  ctx.moveTo(x, y - 5); ctx.lineTo(x, y); ctx.lineTo(end, y); ctx.lineTo(end, y - 5);
  ctx.stroke();
  label(ctx, palette, `${metres} m`, (x + end) / 2, y - 6, { align: "center" });
}

// Strips ------------------------------------------------------------------------------------------------------------

function stripsOf(player) {
  const { data } = player;
  return [
    { name: "Ego speed, m/s", top: data.speed_top_mps, factor: 0.01, values: "speed", unit: "m/s", none: "not seen" },
    { name: "Smallest gap to anybody, m (dotted: to the leader)", top: data.gap_top_m, factor: 0.01, values: "gap",
      second: "leader_gap", unit: "m", none: "nobody" },
    { name: `Smallest time to collision, s (line: ${data.ttc_alarm_s} s)`, top: data.ttc_top_s, factor: 0.001,
      values: "ttc", unit: "s", alarm: data.ttc_alarm_s, none: `over ${data.ttc_top_s}\u00a0s` },
  ];
}

function ticksTo(top) {
  const step = [1, 2, 5, 10, 20, 25].find((size) => top / size <= 4 && Number.isInteger(top / size)) ?? top / 2;
  return Array.from({ length: Math.round(top / step) + 1 }, (_, k) => k * step);
}

const stripTop = (k) => k * (STRIP + GAP) + 16;
const timeAt = (player, width, t) => LEFT + (t / Math.max(player.duration, 1e-9)) * (width - LEFT - RIGHT);

function drawAxes(player) {
  // All of the strips that does not move, on a canvas of its own.
  const { strips, ratio, palette } = player, under = document.createElement("canvas");
  under.width = strips.width; under.height = strips.height;
  const ctx = under.getContext("2d"), width = strips.width / ratio;
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  stripsOf(player).forEach((strip, k) => {
    const top = stripTop(k), bottom = top + STRIP - 16;
    const height = (value) => bottom - clamp(value / strip.top, 0, 1) * (bottom - top);
    ctx.strokeStyle = palette.grid;
    ctx.lineWidth = 1;
    for (const tick of ticksTo(strip.top)) {
      ctx.beginPath();
      ctx.moveTo(LEFT, Math.round(height(tick)) + 0.5);
      ctx.lineTo(width - RIGHT, Math.round(height(tick)) + 0.5);
      ctx.stroke();
      words(ctx, palette, String(tick), LEFT - 7, height(tick) + 4, { align: "right", quiet: true });
    }
    words(ctx, palette, strip.name, LEFT, top - 5, { weight: 600 });
    if (strip.alarm) {
      ctx.fillStyle = ctx.strokeStyle = palette.red;
      ctx.globalAlpha = 0.1;
      ctx.fillRect(LEFT, height(strip.alarm), width - LEFT - RIGHT, bottom - height(strip.alarm));
      ctx.globalAlpha = 1;
      line(ctx, [[LEFT, height(strip.alarm)], [width - RIGHT, height(strip.alarm)]], 1.2, [5, 4]);
    }
    player.scenes.forEach((scene, i) => drawSeries(ctx, player, strip, scene, i, height, width));
  });
  drawSeconds(ctx, player, width);
  return under;
}

function drawSeries(ctx, player, strip, scene, i, height, width) {
  for (const [name, dash, pixels] of [[strip.second, [1.5, 4], 1.4], [strip.values, i ? [7, 4] : [], 2]]) {
    if (!name) continue;
    ctx.strokeStyle = ctx.fillStyle = player.lineColour(i);
    let points = [];
    const flush = () => {
      if (points.length > 1) line(ctx, points, pixels, dash);
      else if (points.length) ctx.fillRect(points[0][0] - 1, points[0][1] - 1, 2, 2);
      points = [];
    };
    scene.series[name].forEach((value, j) => {
      const told = value >= 0 && value * strip.factor <= strip.top * (name === strip.second ? 1 : 1e9);
      if (told) points.push([timeAt(player, width, scene.t[j]), height(value * strip.factor)]);
      else flush();
    });
    flush();
  }
}

function line(ctx, points, pixels, dash = []) {
  ctx.lineWidth = pixels;
  ctx.lineJoin = "round";
  ctx.setLineDash(dash);
  ctx.beginPath();
  points.forEach(([x, y], j) => ctx[j ? "lineTo" : "moveTo"](x, y));
  ctx.stroke();
  ctx.setLineDash([]);
}

function words(ctx, palette, text, x, y, { align = "left", weight = 400, quiet = false, color, size = 12 } = {}) {
  ctx.font = `${weight} ${size}px ${palette.font}`;
  ctx.textAlign = align;
  ctx.fillStyle = color ?? (quiet ? palette.quiet : palette.text);
  ctx.fillText(text, x, y);
}

function drawSeconds(ctx, player, width) {
  const { palette, duration } = player, bottom = stripTop(2) + STRIP - 16;
  const every = [0.5, 1, 2, 5, 10, 30, 60].find((s) => (s / duration) * (width - LEFT - RIGHT) >= 64) ?? 120;
  for (let k = 0; k * every <= duration + 1e-6; k++) {
    const x = timeAt(player, width, k * every);
    words(ctx, palette, k ? String(k * every) : "0 s", x, bottom + 17, { align: "center", quiet: true });
  }
}

function drawCursor(player) {
  const { strips, ratio, palette, under, time } = player, ctx = strips.getContext("2d");
  if (!under) return;
  ctx.setTransform(1, 0, 0, 1, 0, 0);
  ctx.clearRect(0, 0, strips.width, strips.height);
  ctx.drawImage(under, 0, 0);
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  const width = strips.width / ratio, x = timeAt(player, width, time);
  stripsOf(player).forEach((strip, k) => {
    ctx.strokeStyle = palette.text;
    line(ctx, [[x, stripTop(k)], [x, stripTop(k) + STRIP - 16]], 1.3);
    player.scenes.forEach((scene, i) => {
      const now = scene.at(time), step = now.part < 0.5 ? now.step : Math.min(now.step + 1, scene.T - 1);
      const value = scene.series[strip.values][step], ended = time > scene.end + 1e-6;
      const text = ended ? "ended" : value < 0 ? strip.none : `${(value * strip.factor).toFixed(1)}\u00a0${strip.unit}`;
      const alarm = strip.alarm && !ended && value >= 0 && value * strip.factor < strip.alarm;
      const top = stripTop(k), bottom = top + STRIP - 16;
      if (value >= 0 && !ended) {
        ctx.fillStyle = player.lineColour(i);
        ctx.beginPath();
        ctx.arc(x, bottom - clamp((value * strip.factor) / strip.top, 0, 1) * (bottom - top), 3.2, 0, 2 * Math.PI);
        ctx.fill();
      }
      words(ctx, palette, text, width - RIGHT + 10, top + 22 + 20 * i, { weight: alarm ? 700 : 600, size: 14,
        color: alarm ? palette.red : player.lineColour(i) });
    });
  });
}

// A picture to keep -------------------------------------------------------------------------------------------------

function compose(player) {
  const { ratio, palette, views, strips, root } = player, out = document.createElement("canvas");
  const frame = root.getBoundingClientRect(), pad = 16, head = 44;
  const height = views[0].canvas.clientHeight + head + strips.clientHeight + 64;
  out.width = Math.round((frame.width + 2 * pad) * ratio);
  out.height = Math.round((height + 2 * pad) * ratio);
  const ctx = out.getContext("2d");
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.fillStyle = palette.ground;
  ctx.fillRect(0, 0, out.width, out.height);
  for (const { scene, canvas } of views) {
    const box = canvas.getBoundingClientRect(), x = pad + box.x - frame.x;
    words(ctx, palette, `${scene.tag ? `${scene.tag} \u00b7 ` : ""}${scene.title}`, x, pad + 16, { weight: 600, size: 15,
      color: palette.tags[scene.tag] });
    words(ctx, palette, scene.note, x, pad + 35, { quiet: true, size: 13 });
    ctx.drawImage(canvas, x, pad + head, box.width, box.height);
  }
  const below = pad + head + views[0].canvas.clientHeight;
  let x = pad;
  for (const [i, entry] of player.data.legend.entries()) {
    ctx.fillStyle = palette.groups[i];
    ctx.fillRect(x, below + 12, 11, 11);
    words(ctx, palette, entry.name, x + 16, below + 22, { size: 12 });
    x += 34 + ctx.measureText(entry.name).width;
  }
  ctx.drawImage(strips, pad, below + 34, strips.clientWidth, strips.clientHeight);
  words(ctx, palette, `${player.data.stamp} \u00b7 at ${player.time.toFixed(1)} s`, pad, below + strips.clientHeight + 56,
    { quiet: true });
  return out;
}
