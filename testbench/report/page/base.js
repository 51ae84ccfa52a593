"use strict";
// What all parts of the page are made of: numbers as text, elements, tables, tabs, legends.

const format = {
  count: (value) => Math.round(value).toLocaleString("en-US"),
  /** A time in ns, in the unit that suits it. */
  time(ns) {
    const [scale, unit] = ns < 999.995 ? [1, "ns"] : ns < 999995 ? [1e3, "us"] : ns < 999995e3 ? [1e6, "ms"] : [1e9, "s"];
    return `${(ns / scale).toLocaleString("en-US", {maximumSignificantDigits: 5})} ${unit}`;
  },
  gbps: (value) => `${value.toFixed(2)} Gbit/s`,
  rate: (value) => `${value.toFixed(value < 10 ? 3 : 2)} M/s`,
  some: (value, what) => `${format.count(value)} ${what}${value === 1 ? "" : "s"}`,
  share: (value, digits = 1) => `${(100 * value).toFixed(digits)} %`,
  /** A figure of the tool, by its unit. */
  figure(value, unit) {
    if (typeof value !== "number") return String(value);
    if (unit === "share") return format.share(value);
    if (unit === "ns") return format.time(value);
    const digits = Number.isInteger(value) ? 0 : Math.abs(value) < 10 ? 3 : 2;
    const text = value.toLocaleString("en-US", {minimumFractionDigits: digits, maximumFractionDigits: digits});
    return unit ? `${text} ${unit}` : text;
  },
};

/** An element with attributes and children; text is never read as HTML. */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** A part of the page, with its link at the head. */
function section(id, title, note) {
  const made = element("section", {id, "aria-labelledby": `${id}-title`}, element("h2", {id: `${id}-title`}, title), note ? element("p", {class: "note"}, note) : null);
  document.getElementById("content").append(made);
  document.getElementById("contents").append(element("a", {href: `#${id}`}, title));
  return made;
}

/**
 * A table. Of columns {title, value(row), text(value), kind: "number" | "code" | "line" (not broken where it is narrow) | undefined}; the first is the head of its
 * row. Each cell keeps its value as it is in data-value.
 */
function table(caption, columns, rows, rowClass) {
  const cell = (column, row, first) => {
    const value = column.value(row);
    const text = column.text ? column.text(value, row) : typeof value === "number" ? format.count(value) : String(value ?? "");
    return element(first ? "th" : "td", {class: column.kind, scope: first ? "row" : null, "data-value": value ?? ""}, text);
  };
  const head = element("tr", {}, ...columns.map((column) => element("th", {class: column.kind, scope: "col"}, column.title)));
  const body = rows.map((row) => element("tr", {class: rowClass ? rowClass(row) : null}, ...columns.map((column, i) => cell(column, row, i === 0))));
  return element("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": caption},
                 element("table", {}, element("caption", {}, caption), element("thead", {}, head), element("tbody", {}, ...body)));
}

/** What is there for those who want it. */
function folded(title, ...children) {
  return element("details", {}, element("summary", {}, title), ...children);
}

/** [{key, values}] of what has the same key, in the order in which the keys come. */
function grouped(all, key) {
  const groups = new Map();
  for (const one of all) {
    if (!groups.has(key(one))) groups.set(key(one), []);
    groups.get(key(one)).push(one);
  }
  return Array.from(groups, ([name, values]) => ({key: name, values}));
}

let tabGroups = 0;
/** Tabs of [{title, fill(panel)}]; arrows, Home and End move between them. A panel is filled when it is first seen. */
function tabs(label, entries) {
  const group = ++tabGroups;
  const list = element("div", {class: "tabs", role: "tablist", "aria-label": label});
  const panels = entries.map((entry, i) => element("div", {role: "tabpanel", id: `panel-${group}-${i}`, "aria-labelledby": `tab-${group}-${i}`, hidden: ""}));
  const buttons = entries.map((entry, i) => element("button", {type: "button", role: "tab", id: `tab-${group}-${i}`, "aria-controls": `panel-${group}-${i}`}, entry.title));
  const choose = (chosen, focus) => {
    buttons.forEach((button, i) => {
      button.setAttribute("aria-selected", String(i === chosen));
      button.tabIndex = i === chosen ? 0 : -1;
      panels[i].hidden = i !== chosen;
    });
    if (panels[chosen].childElementCount === 0) entries[chosen].fill(panels[chosen]);
    if (focus) buttons[chosen].focus();
  };
  buttons.forEach((button, i) => {
    button.addEventListener("click", () => choose(i, false));
    button.addEventListener("keydown", (event) => {
      const step = {ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: buttons.length - 1}[event.key];
      if (step === undefined) return;
      event.preventDefault();
      choose((step + buttons.length) % buttons.length, true);
    });
  });
  list.append(...buttons);
  const whole = element("div", {}, list, ...panels);
  // Once it stands in the page, where charts know their width.
  queueMicrotask(() => choose(0, false));
  return whole;
}

/** Buttons that switch series on and off; changed(visible) hears the ones that are left. */
function legend(label, series, changed) {
  const visible = new Set(series.map((one) => one.name));
  const list = element("div", {class: "legend", role: "group", "aria-label": label});
  for (const one of series) {
    const button = element("button", {type: "button", "aria-pressed": "true", style: `--colour: ${one.colour}`}, one.name);
    button.addEventListener("click", () => {
      if (visible.has(one.name)) visible.delete(one.name); else visible.add(one.name);
      button.setAttribute("aria-pressed", String(visible.has(one.name)));
      changed(visible);
    });
    list.append(button);
  }
  return list;
}

const colours = ["var(--s0)", "var(--s1)", "var(--s2)", "var(--s3)", "var(--s4)", "var(--s5)", "var(--s6)", "var(--s7)", "var(--s8)", "var(--s9)"];
