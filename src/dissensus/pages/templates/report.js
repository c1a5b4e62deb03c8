"use strict";
(() => {
  const data = JSON.parse(document.getElementById("report-data").textContent);
  const make = (tag, attributes = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "class") node.className = value; else node.setAttribute(name, value);
    }
    node.append(...children.map((child) => (child instanceof Node ? child : String(child))));
    return node;
  };
  const percent = (value) => (value === null ? "–" : `${(100 * value).toFixed(value > 0.99 && value < 1 ? 1 : 0)}%`);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // Dark or light, as in the system until a reader chooses.
  const dark = () => {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  };
  const theme = document.getElementById("theme");
  theme.hidden = false;
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
  });

  const draw = async () => {
    if (typeof vegaEmbed === "undefined") return;
    for (const canvas of all("[data-chart]")) {
      try {
        await drawChart(canvas, data.charts[canvas.dataset.chart], (kind, name) => {
          const index = kind === "annotator" ? indices.annotator.get(name) : undefined;
          if (index !== undefined) annotator(index);
        });
      } catch (problem) {
        console.error("a chart could not be drawn", problem);
      }
    }
    document.documentElement.dataset.drawn = "yes";
  };
  for (const one of all("details.numbers")) one.open = false;

  // Tables: sort by a heading, find a word, keep one kind.
  for (const bar of all(".controls, .downloads")) bar.hidden = false;
  const filters = {};
  const show = (table) => {
    const { word = "", kind = "" } = filters[table.id] || {};
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      const fits = (!kind || (row.dataset.kinds || "").split("|").includes(kind)) && (!word || row.textContent.toLowerCase().includes(word));
      row.hidden = !fits;
      if (fits) shown += 1;
    }
    const count = document.querySelector(`[data-count="${table.id}"]`);
    if (count) count.textContent = `${shown} of ${table.tBodies[0].rows.length} shown`;
  };
  for (const field of all("[data-search]")) {
    field.addEventListener("input", () => {
      const table = document.getElementById(field.dataset.search);
      filters[table.id] = { ...filters[table.id], word: field.value.trim().toLowerCase() };
      show(table);
    });
  }
  for (const field of all("[data-filter]")) {
    field.addEventListener("change", () => {
      const table = document.getElementById(field.dataset.filter);
      filters[table.id] = { ...filters[table.id], kind: field.value };
      show(table);
    });
  }
  for (const table of all("table.rich")) {
    show(table);
    const heads = [...table.tHead.rows[0].cells].map((head) => head.textContent);
    for (const row of table.tBodies[0].rows) heads.forEach((head, k) => (row.cells[k].dataset.label = head));
    table.classList.add("cards");
    for (const head of all("th[data-sort]", table)) {
      const button = make("button", { type: "button" }, head.textContent);
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of all("th[aria-sort]", table)) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const column = head.cellIndex, numeric = head.dataset.sort === "number";
        const value = (row) => {
          const cell = row.cells[column];
          if (!numeric) return cell.textContent;
          return cell.dataset.value === "" ? NaN : Number(cell.dataset.value);
        };
        const rows = [...table.tBodies[0].rows].map((row) => [value(row), row]);
        rows.sort(([a], [b]) => {
          if (numeric) {
            if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
            return down ? b - a : a - b;
          }
          const order = a.localeCompare(b, undefined, { numeric: true });
          return down ? -order : order;
        });
        table.tBodies[0].append(...rows.map(([, row]) => row));
      });
    }
  }

  // Details of an annotator or an item.
  const dialog = document.getElementById("detail");
  const title = document.getElementById("detail-title");
  const body = document.getElementById("detail-body");
  const open = (name, ...content) => {
    title.textContent = name;
    body.replaceChildren(...content);
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
    title.focus();
  };
  const indices = { annotator: new Map(), item: new Map() };
  (data.annotators || []).forEach((one, index) => indices.annotator.set(one.name, index));
  (data.items || []).forEach((one, index) => indices.item.set(one.name, index));
  const link = (kind, name) => {
    const index = indices[kind].get(name);
    if (index === undefined) return make("span", { dir: "auto" }, name);
    const button = make("button", { type: "button", class: "open-button", dir: "auto" }, name);
    button.addEventListener("click", () => (kind === "item" ? item : annotator)(index));
    return button;
  };
  const matrix = (rows) => {
    const table = make("table", { class: "matrix" });
    table.append(make("caption", {}, "Rows: consensus of the others. Columns: labels of this annotator. Share of each row."));
    const head = make("tr", {}, make("th", { scope: "col" }, ""));
    for (const name of data.classes) head.append(make("th", { scope: "col", dir: "auto" }, name));
    table.append(make("thead", {}, head));
    const lines = make("tbody");
    rows.forEach((row, truth) => {
      const line = make("tr", {}, make("th", { scope: "row", dir: "auto" }, data.classes[truth]));
      for (const share of row) {
        const cell = make("td", {}, percent(share));
        cell.style.background = `color-mix(in srgb, var(--accent) ${Math.round(70 * share)}%, transparent)`;
        line.append(cell);
      }
      lines.append(line);
    });
    table.append(lines);
    return make("div", { class: "scroll" }, table);
  };
  const annotator = (index) => {
    const one = data.annotators[index];
    const parts = [make("p", {}, make("strong", {}, one.verdict), ". ", one.evidence)];
    if (one.styles) {
      const rows = one.styles.map(([name, ...cells]) => make("tr", {}, make("th", { scope: "row" }, name), ...cells.map((cell) => make("td", { class: "num" }, cell))));
      parts.push(make("table", { class: "plain" }, make("caption", {}, "Use of the scale, compared with the median annotator, with 99% intervals"), make("tbody", {}, ...rows)));
    }
    if (one.confusion) parts.push(matrix(one.confusion));
    if (one.alone.length) {
      const list = make("ul");
      for (const [name, given, label] of one.alone) {
        list.append(make("li", {}, link("item", name), `: gave ${given}, where the ${data.noun} is ${label}`));
      }
      parts.push(make("h3", {}, data.alone), list);
    }
    open(one.name, ...parts);
  };
  const item = (index) => {
    const one = data.items[index];
    const parts = [];
    if (one.image) parts.push(make("img", { class: "item-image", src: one.image, alt: "the item" }));
    else if (one.text) parts.push(make("p", { class: "item-text", dir: "auto" }, one.text));
    parts.push(make("p", {}, `The ${data.noun} is `, make("strong", { dir: "auto" }, one.label), one.words));
    if (one.gold) parts.push(make("p", {}, `The known ${data.noun} is `, make("strong", { dir: "auto" }, one.gold), "."));
    if (one.posterior) {
      const classes = make("tbody");
      for (const [name, share] of one.posterior) {
        const bar = make("span", { class: "bar" });
        bar.style.width = `${Math.round(140 * share)}px`;
        classes.append(make("tr", {}, make("th", { scope: "row", dir: "auto" }, name), make("td", {}, bar, percent(share))));
      }
      parts.push(make("table", { class: "plain" }, make("caption", {}, "Probability of every class"), classes));
    }
    const labels = make("tbody");
    for (const [annotator, label] of one.annotations) {
      labels.append(make("tr", {}, make("th", { scope: "row" }, link("annotator", data.names[annotator])), make("td", { dir: "auto" }, data.classes ? data.classes[label] : label)));
    }
    const more = one.n > one.annotations.length ? ` (${one.annotations.length} of ${one.n} shown)` : "";
    parts.push(make("table", { class: "plain" }, make("caption", {}, `All ${data.classes ? "labels" : "answers"}${more}`), labels));
    open(one.name, ...parts);
  };
  for (const label of all("[data-open]")) {
    const act = label.dataset.open === "item" ? item : annotator;
    const index = Number(label.closest("tr").dataset.key);
    const button = make("button", { type: "button", class: "open-button" }, label.textContent);
    button.addEventListener("click", () => act(index));
    label.replaceChildren(button);
  }
  for (const cell of all("[data-link]")) cell.replaceChildren(link(cell.dataset.link, cell.textContent));
  for (const sentence of all("[data-names]")) {
    let text = sentence.textContent;
    const parts = [];
    for (const [words, name] of JSON.parse(sentence.dataset.names)) {
      const start = text.indexOf(words);
      if (start < 0) continue;
      parts.push(text.slice(0, start + words.length - name.length), link("annotator", name));
      text = text.slice(start + words.length);
    }
    sentence.replaceChildren(...parts, text);
  }
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });

  // Downloads come from the data of the page.
  const quote = (value) => {
    const short = Number.isFinite(value) && !Number.isInteger(value) ? Number(value.toPrecision(6)) : value;
    const text = short === null || short === undefined ? "" : String(short);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const download = (name, head, rows) => {
    const text = [head, ...rows].map((row) => row.map(quote).join(",")).join("\r\n") + "\r\n";
    const url = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv;charset=utf-8" }));
    const anchor = make("a", { href: url, download: name });
    document.body.append(anchor);
    anchor.click();
    anchor.remove();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  };
  for (const button of all("[data-download]")) {
    const name = button.dataset.download;
    button.addEventListener("click", () => download(`${name}.csv`, ...data.downloads[name]));
  }
  draw();
})();
