"use strict";
// The page around the viewer: theme, sortable tables, the heat map's menus, printing.

document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try {
    localStorage.setItem("vlmhb-theme", root.dataset.theme);
  } catch (error) {
    /* storage is closed: the choice lasts until the page is left */
  }
});

for (const table of document.querySelectorAll("table.sortable")) {
  table.querySelectorAll("thead th").forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => sortTable(table, head, column));
  });
}

function sortTable(table, head, column) {
  const descending = head.getAttribute("aria-sort") === "ascending";
  const numeric = head.classList.contains("num");
  const key = (row) => {
    const cell = row.cells[column];
    if (cell.dataset.sort !== undefined) return Number(cell.dataset.sort);
    return numeric ? NaN : cell.textContent;
  };
  const absent = (value) => typeof value === "number" && Number.isNaN(value);
  const rows = [...table.tBodies[0].rows].map((row) => [key(row), row]);
  rows.sort(([a], [b]) => {
    if (absent(a) || absent(b)) return absent(a) - absent(b);
    const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
    return descending ? -order : order;
  });
  table.querySelectorAll("thead th").forEach((other) => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", descending ? "descending" : "ascending");
  table.tBodies[0].append(...rows.map(([, row]) => row));
}

for (const block of document.querySelectorAll(".heatmaps")) {
  const form = block.querySelector("form");
  const choose = () => {
    for (const map of block.querySelectorAll(".heatmap")) {
      map.hidden = map.dataset.entry !== form.elements.entry.value || map.dataset.metric !== form.elements.metric.value;
    }
  };
  form.addEventListener("change", choose);
  choose();
}

let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details:not([open])")];
  opened.forEach((one) => { one.open = true; });
});
addEventListener("afterprint", () => opened.forEach((one) => { one.open = false; }));
