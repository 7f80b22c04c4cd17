// The picture from above: road, trails, boxes to scale, marks; and a picture to keep.

const TRAIL_S = 3;

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
