// A table whose rows stay the same elements while what they show changes, so that focus and selections stay.
//
// Columns are { name, cell, title, number, words, sort }: a cell gives text, or [text, address] for a link; a title says more. Columns in
// which nobody has anything are hidden; those of words may break their lines.

import { html } from "./dom.js";

export class Rows {
  // On a narrow screen a row becomes a card, which needs no scrolling sideways.
  constructor(caption, columns, sorted) {
    this.columns = columns;
    this.body = html("tbody");
    this.heads = columns.map((column) => html("th", { scope: "col", class: column.number && "number" },
      column.sort && sorted ? html("button", { type: "button", onclick: () => sorted(column.sort) }, column.name) : column.name));
    this.element = html("div", { class: "scroll rows", tabindex: 0, role: "region", "aria-label": caption },
      html("table", {}, html("caption", {}, caption), html("thead", {}, html("tr", {}, this.heads)), this.body));
    this.rows = new Map();
  }

  mark(sort, falling) {
    this.columns.forEach((column, index) => {
      if (column.sort === sort) this.heads[index].setAttribute("aria-sort", falling ? "descending" : "ascending");
      else this.heads[index].removeAttribute("aria-sort");
    });
  }

  // `entries` are [key, value] in order.
  draw(entries) {
    const kept = new Set(entries.map(([key]) => key));
    for (const [key, row] of this.rows) {
      if (!kept.has(key)) { row.remove(); this.rows.delete(key); }
    }
    const filled = this.columns.map(() => !entries.length);
    entries.forEach(([key, value], place) => {
      const row = this.rows.get(key) ?? this.added(key);
      this.columns.forEach((column, index) => {
        const content = column.cell(value, key);
        show(row.cells[index], content, column.title?.(value, key) ?? "");
        filled[index] ||= content !== "";
      });
      if (this.body.rows[place] !== row) this.body.insertBefore(row, this.body.rows[place] ?? null);
    });
    for (const cells of [this.heads, ...[...this.body.rows].map((row) => row.cells)]) filled.forEach((is, index) => { if (cells[index].hidden === is) cells[index].hidden = !is; });
  }

  added(key) {
    const row = html("tr", {}, this.columns.map((column) => html("td", { class: column.number ? "number" : column.words && "words", "data-name": column.name })));
    this.rows.set(key, row);
    return row;
  }
}

function show(cell, content, title) {
  if (cell.title !== title) cell.title = title;
  const [words, address] = Array.isArray(content) ? content : [content, null];
  if (address) {
    if (cell.firstChild?.nodeName !== "A") cell.replaceChildren(html("a"));
    if (cell.firstChild.getAttribute("href") !== address) cell.firstChild.setAttribute("href", address);
  }
  const holder = address ? cell.firstChild : cell;
  if (holder.textContent !== String(words)) holder.textContent = String(words);
}
