"use strict";
const DATA = JSON.parse(document.getElementById("data").textContent);

/** An element with attributes and children; texts are never read as HTML. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (key === "onclick") element.addEventListener("click", value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

/** A number if the text begins with one, else null. */
function readNumber(text) {
  const found = /^[-+]?[\d.]+(?:e[-+]?\d+)?/.exec(String(text));
  return found ? Number(found[0]) : null;
}

const collator = new Intl.Collator("en", { numeric: true });

/** Compares two values; missing ones come last whatever the direction. */
function compare(a, b, direction) {
  const missing = (v) => v === null || v === "-" || v === "";
  if (missing(a) || missing(b)) return missing(a) - missing(b);
  const [x, y] = [readNumber(a), readNumber(b)];
  return direction * (x !== null && y !== null ? x - y : collator.compare(a, b));
}

/** Makes the headings of a table sort it: `sort(column, direction)` is called. */
function makeSortable(headings, sort) {
  headings.forEach((heading, column) => {
    const button = heading.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const up = heading.getAttribute("aria-sort") !== "ascending";
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", up ? "ascending" : "descending");
      sort(column, up ? 1 : -1);
    });
  });
}

for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  makeSortable([...table.tHead.rows[table.tHead.rows.length - 1].cells], (column, direction) => {
    const text = (row) => row.cells[column].textContent.trim();
    body.append(...[...body.rows].sort((a, b) => compare(text(a), text(b), direction)));
  });
}

for (const input of document.querySelectorAll("input.filter")) {
  const body = document.getElementById(input.dataset.table).tBodies[0];
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/);
    for (const row of body.rows) {
      const text = [...row.cells].map((cell) => cell.textContent).join(" ").toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
  });
}

const COLUMNS = [
  ["Domain"], ["Method"], ["Seed", true], ["Problem"], ["Outcome"], ["Length", true], ["Cost", true],
  ["Steps", true], ["Returns", true], ["Seconds", true],
];
const SIGNS = { solved: "✓", step_limit: "…", dead_end: "⊥", no_plan: "∅", unsolvable: "⊘",
  time_limit: "◷", memory_limit: "▤", invalid_plan: "✗", error: "!" };
const PAGE = 100;

/** The number of the plan to watch for a row, or -1. */
function planOf(row) {
  const plans = DATA.watched.plans || [];
  return plans.findIndex((plan) => plan.domain === row[10] && plan.problem === row[3] &&
    row[4] === "solved" && [row[5], row[11]].includes(plan.steps.length) && !plan.fault);
}

(function showProblems() {
  const table = document.getElementById("problem-table");
  if (!table) return;
  const form = document.getElementById("problem-filters");
  const more = document.getElementById("problem-more");
  const watchable = DATA.rows.some((row) => planOf(row) >= 0);
  let rows = DATA.rows, shown = PAGE;

  const headings = COLUMNS.map(([name, number]) =>
    make("th", { scope: "col", class: number ? "number" : null }, make("button", { type: "button" }, name)));
  table.tHead.rows[0].append(...headings);
  if (watchable) table.tHead.rows[0].append(make("th", { scope: "col" }, "Plan"));

  [["domain", 0], ["method", 1], ["outcome", 4]].forEach(([name, column]) => {
    for (const value of new Set(DATA.rows.map((row) => row[column]))) {
      form.elements[name].append(make("option", { value }, column === 4 ? DATA.outcomes[value] : value));
    }
  });

  function makeRow(row) {
    const cells = COLUMNS.map(([, number], i) => {
      let text = row[i] === null ? "-" : String(row[i]);
      if (i === 3) return make("th", { scope: "row" }, text);
      if (i === 4) {
        const sign = make("span", { class: "sign", "aria-hidden": "true" }, SIGNS[row[4]]);
        return make("td", { class: "outcome " + (row[4] === "solved" ? "good" : "bad") }, sign, " " + DATA.outcomes[row[4]]);
      }
      return make("td", { class: number ? "number" : null }, text);
    });
    if (watchable) {
      const plan = planOf(row);
      const watch = () => window.watchPlan(plan);
      cells.push(make("td", {}, ...(plan < 0 ? [] : [make("button",
        { type: "button", onclick: watch, "aria-label": "Watch the plan of " + row[3] }, "Watch")])));
    }
    return make("tr", {}, ...cells);
  }

  function show() {
    const value = (name) => form.elements[name].value;
    const words = value("text").toLowerCase().split(/\s+/);
    const chosen = rows.filter((row) =>
      (!value("domain") || row[0] === value("domain")) &&
      (!value("method") || row[1] === value("method")) &&
      (!value("outcome") || row[4] === value("outcome")) &&
      words.every((word) => row.slice(0, 5).join(" ").toLowerCase().includes(word)));
    table.tBodies[0].replaceChildren(...chosen.slice(0, shown).map(makeRow));
    const solved = chosen.filter((row) => row[4] === "solved").length;
    const of = chosen.length === rows.length ? "" : ` of ${rows.length}`;
    document.getElementById("problem-count").textContent =
      `${chosen.length}${of} results, ${solved} solved`;
    more.hidden = chosen.length <= shown;
  }

  makeSortable(headings, (column, direction) => {
    rows = [...rows].sort((a, b) => compare(a[column], b[column], direction));
    show();
  });
  form.addEventListener("input", () => { shown = PAGE; show(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", () => { shown += 5 * PAGE; show(); });
  show();
})();

(function chooseTheme() {
  const button = document.getElementById("theme");
  const names = { "": "as the system", light: "light", dark: "dark" };
  button.addEventListener("click", () => {
    const order = Object.keys(names), root = document.documentElement;
    const next = order[(order.indexOf(root.dataset.theme || "") + 1) % order.length];
    root.dataset.theme = next;
    button.textContent = "Theme: " + names[next];
  });
})();
