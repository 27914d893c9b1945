"use strict";
// The controls of the what-if section. Without scripts it has the table of the default mix alone. All rankings are the
// module's, which is `flashgrain advise`'s own code; crates/what-if says how it is called.
(async () => {
  const part = document.getElementById("what-if-live");
  async function compiled() {
    const coded = atob(document.getElementById("what-if-module").textContent);
    const { instance } = await WebAssembly.instantiate(Uint8Array.from(coded, (byte) => byte.charCodeAt(0)));
    return instance.exports;
  }
  const module = await compiled().catch((error) => {
    const absent = document.getElementById("what-if-absent");
    absent.textContent = "Workload and drive cannot be varied here, because this browser does not run WebAssembly "
      + `(${error.message}): the table ranks the default workload only.`;
    absent.hidden = false;
  });
  if (!module) { return; }
  function ranked(asked) {
    const text = new TextEncoder().encode(JSON.stringify(asked)), to = module.question(text.length);
    // Either call may move the module's memory.
    new Uint8Array(module.memory.buffer, to, text.length).set(text);
    const from = module.answer();
    const answer = new Uint8Array(module.memory.buffer, from, module.answer_bytes());
    const standing = JSON.parse(new TextDecoder().decode(answer));
    if (standing.error) { throw new Error(standing.error); }
    return standing;
  }

  const base = JSON.parse(document.getElementById("what-if-data").textContent);
  const body = document.querySelector("#what-if table tbody");
  const svg = part.querySelector("svg");

  const digits = (value) => String(Number(value.toPrecision(3)));
  const scaled = (value, units, step) => {
    let place = 0;
    while (place + 1 < units.length && Number(value.toPrecision(3)) >= step) { value /= step; place += 1; }
    return digits(value) + (units[place] && " " + units[place]);
  };
  const count = (value) => scaled(value, ["", "k", "M", "G"], 1000);
  const bytes = (value) => scaled(value, ["B", "KiB", "MiB", "GiB", "TiB"], 1024);
  const micros = (value) => scaled(value, ["µs", "ms", "s"], 1000);
  const percent = (value) => Math.round(value * 100) + " %";
  const times = (value) => "× " + digits(value);
  const interval = (own, show) => `${show(own.value)} (${show(own.low)} – ${show(own.high)})`;

  // Values of sliders are logarithms to the base of 2 where `log` is set.
  const factor = (name, label) => ({
    label, log: true, min: 1 / 16, max: 16, step: 0.25, from: 1, show: times,
    set: (question, value) => { question.factors[name] = value; },
  });
  const { workload } = base;
  const { operations } = workload;
  const knobs = [
    { label: "share of writes", min: 0, max: 1, step: 0.01, show: percent,
      from: operations.inserts + operations.updates + operations.deletes,
      set: ({ workload: { operations: own } }, value) => { own.updates = value; own.point_hits = 1 - value; } },
    { label: "memory", log: true, min: 2 ** 27, max: 2 ** 39, step: 0.25, from: workload.memory_bytes, show: bytes,
      set: (question, value) => { question.workload.memory_bytes = Math.round(value); } },
    { label: "clients", log: true, min: 1, max: 1024, step: 0.25, from: workload.clients, show: (value) => String(Math.round(value)),
      set: (question, value) => { question.workload.clients = Math.round(value); } },
    { label: "value size", log: true, min: 16, max: 65536, step: 0.01, from: workload.records.value_bytes, show: bytes,
      set: (question, value) => { question.workload.records.value_bytes = Math.round(value); } },
    { label: "skew (Zipf)", min: 0, max: 1.5, step: 0.01, from: workload.skew, show: digits,
      set: (question, value) => { question.workload.skew = value; } },
    factor("read_setup", "setup of reads"), factor("read_transfer", "transfer of reads"),
    factor("write_setup", "setup of writes"), factor("write_transfer", "transfer of writes"), factor("flush", "flush"),
  ];
  // Where a slider begins, its value is the default's own, which may lie between two steps.
  function valueOf(knob) {
    if (knob.input.value === knob.start) { return knob.from; }
    return knob.log ? 2 ** Number(knob.input.value) : Number(knob.input.value);
  }
  const place = (knob, value) => knob.log ? Math.log2(value) : value;

  const form = part.querySelector("form");
  const element = (name, parent, properties = {}) => {
    const made = Object.assign(document.createElement(name), properties);
    parent.append(made);
    return made;
  };
  for (const knob of knobs) {
    const label = element("label", form);
    element("span", label, { textContent: knob.label });
    knob.output = element("output", label);
    knob.input = element("input", label, { type: "range", step: knob.step });
    Object.assign(knob.input, { min: place(knob, knob.min), max: place(knob, knob.max) });
    knob.input.value = place(knob, knob.from);
    knob.start = knob.input.value;
  }
  const durable = element("label", form, { className: "check" });
  const durableInput = element("input", durable, { type: "checkbox", checked: workload.durability.promise === "sync" });
  element("span", durable, { textContent: "every commit survives a power cut" });
  const over = element("label", form, { className: "check" });
  element("span", over, { textContent: "chart over" });
  const lever = element("select", over);
  knobs.forEach((knob, index) => element("option", lever, { value: index, textContent: knob.label }));
  const reset = element("button", form, { type: "button", textContent: "as profiled" });

  // The question with the sliders as they are, but for one of them.
  function question(varied, value) {
    const own = structuredClone(base);
    own.workload.durability = durableInput.checked ? { promise: "sync" } : { promise: "none" };
    for (const knob of knobs) { knob.set(own, knob === varied ? value : valueOf(knob)); }
    return own;
  }

  const names = JSON.parse(part.dataset.names);
  function showTable() {
    for (const knob of knobs) { knob.output.textContent = knob.show(valueOf(knob)); }
    const { rows, lead } = ranked(question());
    body.replaceChildren(...rows.map((row, index) => {
      const line = document.createElement("tr");
      const amplified = row.write_amplification === null ? "–" : digits(row.write_amplification);
      const cells = [
        ["label", names[row.family]], ["number", interval(row.rate_per_second, count), "operations/s"],
        ["number", interval(row.latency_us, micros), "latency"], ["label", names[row.bound]],
        ["number", amplified, "written per byte"], ["number", digits(row.space_amplification), "space per byte"],
        ["prose", row.design],
      ];
      cells.forEach(([kind, text, title], column) => {
        const tone = index === 0 && column < 2 ? " strong" : "";
        const cell = element("td", line, { className: kind + tone, textContent: text });
        if (title) { cell.dataset.title = title; }
      });
      return line;
    }));
    const [first, second] = rows;
    const ratio = lead?.value ?? 1;
    const ahead = ratio < 1.01 ? "less than 1 %" : ratio < 2 ? percent(ratio - 1) : `${digits(ratio)} times the rate`;
    part.querySelector(".lead").textContent = lead
      ? `First: ${names[first.family]}. Its lead over the second, ${names[second.family]}: ${ahead}.`
      : "Memory has room for one design at most.";
  }

  const POINTS = 24, HEIGHT = 270, LEFT = 50, RIGHT = 16, TOP = 12, BOTTOM = 40;
  const draw = (name, attributes, text) => {
    const made = document.createElementNS(svg.namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) { made.setAttribute(key, value); }
    if (text !== undefined) { made.textContent = text; }
    svg.append(made);
  };
  // Powers of ten, or with 2 and 5 between them where there are few.
  function ticks(low, high) {
    const found = [], few = Math.log10(high / low) < 2;
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
      for (const part of few ? [1, 2, 5] : [1]) { found.push(part * 10 ** power); }
    }
    return found.filter((tick) => tick >= low && tick <= high);
  }

  function showChart() {
    const knob = knobs[lever.value];
    const [from, to] = [place(knob, knob.min), place(knob, knob.max)];
    const points = Array.from({ length: POINTS + 1 }, (_, step) => {
      const at = from + (to - from) * step / POINTS;
      return { at, rows: ranked(question(knob, knob.log ? 2 ** at : at)).rows };
    });
    const rates = points.flatMap(({ rows }) => rows.map((row) => row.rate_per_second.value));
    const [low, high] = [Math.min(...rates) / 1.15, Math.max(...rates) * 1.15];
    const width = Math.min(Math.max(svg.parentNode.clientWidth, 260), 760);
    const x = (at) => LEFT + (width - LEFT - RIGHT) * (at - from) / (to - from);
    const y = (rate) => TOP + (HEIGHT - TOP - BOTTOM) * Math.log(high / rate) / Math.log(high / low);
    svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    svg.setAttribute("aria-label", `Operations per second of each design over ${knob.label}`);
    svg.replaceChildren();
    for (const tick of ticks(low, high)) {
      draw("path", { class: "grid", d: `M${LEFT} ${y(tick)}H${width - RIGHT}` });
      const at = Math.min(Math.max(y(tick) + 4, 12), HEIGHT - BOTTOM);
      draw("text", { x: LEFT - 6, y: at, "text-anchor": "end" }, count(tick));
    }
    for (const share of [0, 0.25, 0.5, 0.75, 1]) {
      const at = from + (to - from) * share;
      const anchor = share === 0 ? "start" : share === 1 ? "end" : "middle";
      draw("path", { class: "grid", d: `M${x(at)} ${TOP}V${HEIGHT - BOTTOM}` });
      draw("text", { x: x(at), y: HEIGHT - BOTTOM + 15, "text-anchor": anchor }, knob.show(knob.log ? 2 ** at : at));
    }
    draw("path", { class: "frame", d: `M${LEFT} ${TOP}V${HEIGHT - BOTTOM}H${width - RIGHT}` });
    draw("path", { class: "rule", d: `M${x(place(knob, valueOf(knob)))} ${TOP}V${HEIGHT - BOTTOM}` });
    draw("text", { class: "axis-title", x: (LEFT + width - RIGHT) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, knob.label);
    for (const key of part.querySelectorAll(".legend [data-s]")) {
      const family = key.dataset.s;
      let path = "", pen = "M";
      for (const { at, rows } of points) {
        const own = rows.find((row) => row.family === family);
        if (own) { path += `${pen}${x(at).toFixed(1)} ${y(own.rate_per_second.value).toFixed(1)}`; }
        pen = own ? "L" : "M";
      }
      const colour = key.querySelector("i").style.color;
      if (path) { draw("path", { class: "fit", "data-s": family, style: `color:${colour}`, d: path }); }
    }
    part.querySelector("h3").textContent = `Operations/s over ${knob.label}`;
  }

  // The table follows each move; the chart, which takes longer, the end of it.
  let waiting;
  function show() {
    showTable();
    clearTimeout(waiting);
    waiting = setTimeout(showChart, 80);
  }
  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  reset.addEventListener("click", () => {
    for (const knob of knobs) { knob.input.value = place(knob, knob.from); }
    durableInput.checked = workload.durability.promise === "sync";
    show();
  });
  part.hidden = false;
  showTable();
  showChart();
  addEventListener("resize", showChart);
})();
