"use strict";
(() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const by = (id) => document.getElementById(id);
  const root = document.documentElement;

  // Dark or light, as in the system until a reader chooses.
  by("theme").hidden = false;
  by("theme").addEventListener("click", () => {
    const chosen = root.dataset.theme;
    const dark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  for (const bar of all(".controls")) bar.hidden = false;
  const show = () => {
    const word = by("find").value.trim().toLowerCase(), who = by("who").value;
    let shown = 0;
    for (const item of all(".item")) {
      item.hidden = !item.dataset.name.toLowerCase().includes(word);
      if (!item.hidden) shown += 1;
    }
    for (const card of all(".card[data-who]")) card.hidden = who !== "" && card.dataset.who !== who;
    by("count").textContent = `${shown} of ${all(".item").length} items`;
  };
  by("find").addEventListener("input", show);
  by("who").addEventListener("change", show);
  by("fade").addEventListener("input", () => root.style.setProperty("--fade", by("fade").value / 100));
  by("difference").addEventListener("change", () => {
    const on = by("difference").checked;
    document.body.classList.toggle("contrast", on);
    for (const one of all(".heat.map, .plainly")) one.hidden = on;
    for (const one of all(".heat.change, .compared")) one.hidden = !on;
  });
  show();
})();
