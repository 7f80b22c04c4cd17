// Pictures of the map to keep: points as an image, lines and words as vectors, the legend below, and which run it is.
// Joined with map_draw.js and map.js to one module by map.py.

const TOP = 34, ROW = 20, LEFT = 10; // pixels above the map, of a row of the legend, and beside the text

async function save(map, kind) {
  const { head } = map.points, svg = picture(map);
  let blob = new Blob([new XMLSerializer().serializeToString(svg)], { type: "image/svg+xml" });
  if (kind === "png") blob = await pngOf(blob, svg.width.baseVal.value, svg.height.baseVal.value);
  const link = element("a", { download: `${head.stamp.file}.${kind}`, href: URL.createObjectURL(blob) });
  map.root.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

async function pngOf(blob, width, height) {
  const image = new Image(), source = URL.createObjectURL(blob), scale = 2;
  await new Promise((done, failed) => Object.assign(image, { onload: done, onerror: failed, src: source }));
  const canvas = element("canvas", { width: Math.round(width * scale), height: Math.round(height * scale) });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(source);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

function picture(map) {
  const { head } = map.points, { width, height } = map, style = getComputedStyle(map.host);
  const ink = style.getPropertyValue("--st-text-color").trim() || "#222222";
  const paper = style.getPropertyValue("--st-background-color").trim() || "#ffffff";
  const text = (x, y, words, size = 12, weight = 400) => element("svg:text", { x, y, fill: ink, "font-size": size,
    "font-weight": weight, "font-family": "sans-serif" }, words);
  const legend = map.points.head.colour.kind === "scale" ? barPicture(map, text) : chipsPicture(map, text);
  const bottom = TOP + height + 24 + legend.rows * ROW;
  const svg = element("svg:svg", { width, height: bottom + 22, viewBox: `0 0 ${width} ${bottom + 22}` });
  const layer = (canvas) => element("svg:image", { href: canvas.toDataURL(), width, height, y: TOP });
  svg.append(element("svg:rect", { width: "100%", height: "100%", fill: paper }),
    text(LEFT, 22, head.stamp.title, 14, 600), layer(map.under), layer(map.canvas), linesPicture(map, ink, paper),
    element("svg:g", { transform: `translate(0 ${TOP + height + 24})` }, ...legend.parts),
    text(LEFT, bottom + 10, `${map.status.textContent} · ${head.axes.join(", ")} · ${head.stamp.run}`, 10));
  return svg;
}

function linesPicture(map, ink, paper) {
  // The overlay with its looks written out, because a file has no style sheet.
  const looks = {
    veil: { fill: paper, "fill-opacity": 0.6, "fill-rule": "evenodd" },
    selection: { stroke: ink, "stroke-width": 1.6, "stroke-dasharray": "5 3" },
    halo: { stroke: paper, "stroke-width": 4, "stroke-opacity": 0.8 }, outline: { stroke: ink, "stroke-width": 1.4 },
    label: { fill: ink, stroke: paper, "stroke-width": 4, "paint-order": "stroke", "font-size": 14, "font-weight": 700,
      "font-family": "sans-serif", "text-anchor": "middle", "dominant-baseline": "central" },
  };
  const group = element("svg:g", { transform: `translate(0 ${TOP})`, fill: "none" });
  for (const child of map.overlay.children) {
    const copy = child.cloneNode(true);
    for (const [name, value] of Object.entries(looks[copy.getAttribute("class")])) copy.setAttribute(name, value);
    group.append(copy);
  }
  return group;
}

function barPicture(map, text) {
  const { colour } = map.points.head, steps = ramp(colour[map.theme]), wide = 220, count = 44;
  const title = colour.unit ? `${colour.title} (${colour.unit})` : colour.title, x = LEFT + 20 + 7 * title.length;
  const parts = [text(LEFT, 0, title, 12, 600)];
  for (let k = 0; k < count; k++) {
    const at = 3 * Math.round((k / (count - 1)) * (MISSING - 1));
    parts.push(element("svg:rect", { x: x + (k * wide) / count, y: -10, width: wide / count + 0.5, height: 10,
      fill: `rgb(${[...steps.subarray(at, at + 3)]})` }));
  }
  for (const [level, words] of colour.ticks) {
    parts.push(text(x + (wide * level) / (MISSING - 1) - 3 * words.length, ROW - 6, words, 10));
  }
  return { parts, rows: 2 };
}

function chipsPicture(map, text) {
  const { colour } = map.points.head, parts = [text(LEFT, 0, colour.title, 12, 600)];
  let x = LEFT + 20 + 7 * colour.title.length, row = 0;
  colour.names.forEach((name, k) => {
    const words = `${name} ${number(colour.counts[k])}`, wide = 26 + 6.8 * words.length;
    if (x + wide > map.width && x > LEFT) [x, row] = [LEFT, row + 1];
    parts.push(element("svg:rect", { x, y: row * ROW - 10, width: 10, height: 10, rx: 2, fill: colour[map.theme][k] }),
      text(x + 15, row * ROW, words));
    x += wide;
  });
  return { parts, rows: row + 1 };
}
