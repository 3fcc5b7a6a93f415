"use strict";
// Sorts a table by the column whose heading is pressed; a second press turns the order round. Fields without a value
// stay last either way, and equal ones keep the order in which the page was written.
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  const written = [...body.rows];
  const headings = [...table.tHead.rows[0].cells];
  const key = (row, at) => row.cells[at].dataset.order;
  const order = (left, right, isNumber) => (isNumber ? left - right : left.localeCompare(right));
  headings.forEach((heading, at) => {
    heading.querySelector("button").addEventListener("click", () => {
      const way = heading.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      const valued = written.filter((row) => key(row, at) !== undefined);
      const isNumber = valued.every((row) => key(row, at) !== "" && Number.isFinite(Number(key(row, at))));
      valued.sort((left, right) => way * order(key(left, at), key(right, at), isNumber));
      body.append(...valued, ...written.filter((row) => key(row, at) === undefined));
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", way === 1 ? "ascending" : "descending");
    });
  });
}
