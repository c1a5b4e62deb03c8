"use strict";
// Draw one chart. The style sheet colours its texts and axes, so it follows the theme and the printer.
const drawChart = async (canvas, spec, clicked) => {
  const look = { background: "transparent", font: "system-ui, sans-serif", axis: { labelFontSize: 12, titleFontSize: 12, titleFontWeight: 400 }, legend: { labelFontSize: 12 } };
  const own = spec.config || {};
  spec.config = { ...look, ...own, view: { ...(own.view || {}), stroke: null } };
  const options = { actions: false, ast: true, renderer: "svg", defaultStyle: false, tooltip: { theme: "custom", disableDefaultStyle: true } };
  const drawn = await vegaEmbed(canvas, spec, options);
  canvas.classList.add("live");
  const title = document.createElementNS("http://www.w3.org/2000/svg", "title");
  title.textContent = canvas.getAttribute("aria-label");
  canvas.querySelector("svg").prepend(title);
  // Names of annotators may end with a space without width, which keeps numbers from being sorted.
  drawn.view.addEventListener("click", (_event, mark) => {
    const datum = (mark && mark.datum) || {};
    if (datum.annotator !== undefined) clicked("annotator", String(datum.annotator).replace(/\u200b$/, ""));
    else if (datum.class !== undefined) clicked("class", String(datum.class).replace(/\u200b$/, ""));
  });
};
