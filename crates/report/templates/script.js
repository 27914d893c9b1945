"use strict";
// The page is complete without this: it adds a theme switch, quicker tooltips and highlighting from the legend.
(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const themes = ["auto", "light", "dark"];
  const stored = () => { try { return localStorage.getItem("flashgrain-theme"); } catch { return null; } };
  const show = (theme) => {
    if (theme === "auto") { delete root.dataset.theme; } else { root.dataset.theme = theme; }
    button.textContent = "theme: " + theme;
  };
  let theme = themes.includes(stored()) ? stored() : "auto";
  show(theme);
  button.hidden = false;
  button.addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    show(theme);
    try { localStorage.setItem("flashgrain-theme", theme); } catch { /* private pages remember nothing */ }
  });

  // The browser's own tooltips come late and only exactly on the mark: ours take the nearest mark within reach.
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  document.body.append(tip);
  const reach = 22;
  for (const svg of document.querySelectorAll(".panels > svg")) {
    const marks = [...svg.querySelectorAll("g > title")].map((title) => {
      const mark = { group: title.parentNode, words: title.textContent };
      title.remove();
      return mark;
    });
    const distance = ({ group }, event) => {
      const box = (group.querySelector("circle") ?? group).getBoundingClientRect();
      const dx = Math.max(box.left - event.clientX, 0, event.clientX - box.right);
      const dy = Math.max(box.top - event.clientY, 0, event.clientY - box.bottom);
      return Math.hypot(dx, dy);
    };
    svg.addEventListener("pointermove", (event) => {
      let nearest = null;
      let best = reach;
      for (const mark of marks) {
        const away = distance(mark, event);
        if (away < best) { best = away; nearest = mark; }
      }
      tip.hidden = !nearest;
      if (!nearest) { return; }
      tip.textContent = nearest.words;
      const { width, height } = tip.getBoundingClientRect();
      const x = Math.min(event.clientX + 14, innerWidth - width - 8);
      const above = event.clientY - height - 12;
      tip.style.transform = `translate(${Math.max(8, x)}px, ${above > 4 ? above : event.clientY + 18}px)`;
    });
    svg.addEventListener("pointerleave", () => { tip.hidden = true; });
  }

  for (const figure of document.querySelectorAll("figure")) {
    const panels = figure.querySelector(".panels");
    for (const key of figure.querySelectorAll(".legend [data-s]")) {
      const light = (on) => {
        panels.classList.toggle("dimmed", on);
        for (const drawn of panels.querySelectorAll("[data-s]")) {
          drawn.classList.toggle("lit", on && drawn.dataset.s === key.dataset.s);
        }
      };
      key.addEventListener("pointerenter", () => light(true));
      key.addEventListener("pointerleave", () => light(false));
    }
  }
})();
