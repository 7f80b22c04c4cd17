// Bird's-eye player: one scene, or two on one clock. All of playback runs here; the server is not asked for anything.
// The message is made by avshift_core/scenario/playback.py; text in it is only ever set as text, never as HTML.
// Read together with player_scene.js, player_picture.js and player_strips.js, as one script (player.py).

const RATES = [0.25, 0.5, 1, 2, 4];
const REACH_M = { height: 48, width: 76 }; // metres that a picture shows at least, before any zoom
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
