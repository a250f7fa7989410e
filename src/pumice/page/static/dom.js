// Elements. Children are nodes or text: nothing that comes from a cluster is ever read as markup.

export const html = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);

export const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child != null && child !== false));
  return element;
}

// Columns to rows: headings, then the cells of each row. Numbers stand at the right, and so do the headings above them.
export function table(headings, rows, caption) {
  const cells = (row) => row.map((cell) => html("td", typeof cell === "number" ? { class: "number" } : {}, cell instanceof Node ? cell : String(cell)));
  return html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    html("table", {},
      html("caption", {}, caption),
      html("thead", {}, html("tr", {}, headings.map((heading, at) => html("th", { scope: "col", class: rows.length > 0 && rows.every((row) => typeof row[at] === "number") && "number" }, heading)))),
      html("tbody", {}, rows.map((row) => html("tr", {}, cells(row))))));
}
