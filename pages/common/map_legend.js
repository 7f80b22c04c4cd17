// The map's legend: a chip a category, or a bar with numbers, and what the density difference means.
// Joined with the other map*.js to one module by map.py.

function legendOf(head, theme, chosen, heated, choose) {
  const { colour } = head, parts = colour.kind === "scale" ? bar(colour, theme) : chips(colour, theme, chosen, choose);
  if (heated) {
    const [low, high] = head.pq[theme];
    parts.push(scale("Density", `${low}, transparent, ${high}`, [["0%", "more of P"], ["100%", "more of Q"]], "short"));
  }
  if (colour.note) parts.push(element("span", { class: "note" }, colour.note));
  return parts;
}

function swatch(colour) {
  const made = element("span", { class: "swatch" });
  made.style.background = colour;
  return made;
}

function chips(colour, theme, chosen, choose) {
  return [element("span", { class: "title" }, colour.title), ...colour.names.map((name, k) => {
    const chip = element("button", { type: "button", class: "chip", "aria-pressed": k === chosen,
      title: "Show these in front, the others in grey; again for all" }, swatch(colour[theme][k]), name,
    element("span", { class: "count" }, number(colour.counts[k])));
    chip.onclick = () => choose(k);
    return chip;
  })];
}

function scale(title, stops, ticks, kind = "") {
  return element("div", { class: `scale ${kind}` }, element("span", { class: "title" }, title),
    element("div", { class: "ramp", style: `background: linear-gradient(90deg, ${stops})` }),
    element("div", { class: "ticks" }, ...ticks.map(([left, text]) => element("span", { style: `left: ${left}` }, text))));
}

function bar(colour, theme) {
  const steps = ramp(colour[theme]), at = (k) => `rgb(${[...steps.subarray(3 * k, 3 * k + 3)]})`;
  const stops = Array.from({ length: 18 }, (_, k) => at(Math.round((k / 17) * (MISSING - 1))));
  const title = colour.unit ? `${colour.title} (${colour.unit})` : colour.title;
  const parts = [scale(title, stops.join(", "), colour.ticks.map(([level, text]) =>
    [`${(100 * level) / (MISSING - 1)}%`, text]))];
  if (colour.missing) {
    parts.push(element("span", { class: "chip still" }, swatch(`rgb(${GREY[theme]})`), "no value",
      element("span", { class: "count" }, number(colour.missing))));
  }
  return parts;
}
