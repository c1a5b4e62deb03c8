"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // Dark or light, as in the system until a reader chooses; kept for this browser.
  const root = document.documentElement;
  const stored = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
  if (stored()) root.dataset.theme = stored();
  document.addEventListener("click", (event) => {
    if (event.target.id !== "theme") return;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("theme", root.dataset.theme); } catch { /* not kept */ }
  });

  // Keys: a digit or letter presses what is marked with it, arrows move between choices.
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const field = event.target.closest("input, textarea, select");
    if (field) {
      if (event.key === "Escape") field.blur();
      return;
    }
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const choices = all("[data-choice]");
      if (!choices.length) return;
      const here = choices.indexOf(document.activeElement);
      const step = event.key === "ArrowDown" ? 1 : -1;
      const next = here < 0 ? (step > 0 ? 0 : choices.length - 1) : (here + step + choices.length) % choices.length;
      choices[next].focus();
      event.preventDefault();
      return;
    }
    const wanted = all("[data-key]").find((one) => one.dataset.key === event.key);
    if (!wanted || wanted.disabled || event.repeat) return;
    event.preventDefault();
    if (wanted.matches("textarea")) wanted.focus(); else wanted.click();
  });

  // One decision at a time: further presses wait for the answer.
  let busy = false;
  document.addEventListener("htmx:beforeRequest", (event) => {
    const form = event.target.closest && event.target.closest("form[method=post]");
    if (!form) return;
    if (busy) event.preventDefault(); else busy = true;
  });
  const free = () => { busy = false; };
  document.addEventListener("htmx:afterRequest", (event) => { if (event.detail.requestConfig.verb === "post") free(); });
  document.addEventListener("htmx:sendError", () => {
    free();
    const bar = document.getElementById("status");
    if (bar) bar.textContent = "The workbench does not answer. Is it still running? Nothing you see here was saved since.";
  });
  // Who follows a link no longer waits for a search.
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (event.detail.boosted) for (const form of all("form.filters")) htmx.trigger(form, "htmx:abort");
  });
  // Pages about errors are shown as well.
  document.addEventListener("htmx:beforeSwap", (event) => {
    const status = event.detail.xhr.status;
    if (status === 401) { location.reload(); return; }
    if (status >= 400 && event.target.id !== "status") { event.detail.shouldSwap = true; event.detail.isError = false; }
  });

  // Charts, drawn when the library is there; a click opens the annotator or the items.
  const library = () => new Promise((resolve, reject) => {
    if (window.vegaEmbed) { resolve(); return; }
    const script = document.createElement("script");
    script.src = "/static/vega.js";
    script.onload = resolve;
    script.onerror = reject;
    document.head.append(script);
  });
  const draw = async () => {
    const data = document.getElementById("chart-specs");
    for (const one of all("details.numbers")) one.open = false;
    if (!data || data.dataset.drawn) return;
    data.dataset.drawn = "yes";
    await library();
    const specs = JSON.parse(data.textContent);
    for (const canvas of all("[data-chart]")) {
      await drawChart(canvas, specs[canvas.dataset.chart], (kind, name) => {
        if (kind === "annotator") location.assign(`/annotators/one?${new URLSearchParams({ name })}`);
        else location.assign(`/items?${new URLSearchParams({ label: name })}`);
      });
    }
    root.dataset.drawn = "yes";
  };
  document.addEventListener("DOMContentLoaded", draw);
  document.addEventListener("htmx:afterSettle", draw);
})();
