(function () {
  'use strict';

  // Numbers by data-sort, whose empty text is "no number" and comes last either way; texts by the reader's alphabet.
  function key(row, column) {
    var cell = row.cells[column];
    if (!cell.hasAttribute('data-sort')) return cell.textContent;
    var text = cell.getAttribute('data-sort');
    return text === '' ? null : Number(text);
  }

  function sortBy(table, column, ascending) {
    var body = table.tBodies[0];
    var rows = Array.prototype.slice.call(body.rows);
    rows.sort(function (a, b) {
      var x = key(a, column), y = key(b, column);
      if (x === null || y === null) return (x === null) - (y === null);
      var order = typeof x === 'number' ? x - y : x.localeCompare(y, undefined, {numeric: true});
      return ascending ? order : -order;
    });
    rows.forEach(function (row) { body.appendChild(row); });
  }

  // The line of the LaTeX text, behind its \midrule, that a row has.
  function numberRows(table) {
    Array.prototype.forEach.call(table.tBodies[0].rows, function (row, i) { row.setAttribute('data-row', i); });
  }

  function makeSortable(table) {
    var headers = Array.prototype.slice.call(table.tHead.rows[0].cells);
    numberRows(table);
    headers.forEach(function (header, column) {
      var button = header.querySelector('button');
      button.disabled = false;
      button.addEventListener('click', function () {
        var ascending = header.getAttribute('aria-sort') !== 'ascending';
        headers.forEach(function (other) { other.setAttribute('aria-sort', 'none'); });
        header.setAttribute('aria-sort', ascending ? 'ascending' : 'descending');
        sortBy(table, column, ascending);
      });
    });
  }

  // In the order in which the rows stand now.
  function latexOf(table) {
    var lines = document.getElementById(table.id + '-latex').textContent.split('\n');
    var first = lines.indexOf('\\midrule') + 1;
    var rows = Array.prototype.slice.call(table.tBodies[0].rows).map(function (row) {
      return lines[first + Number(row.getAttribute('data-row'))];
    });
    return lines.slice(0, first).concat(rows, lines.slice(first + rows.length)).join('\n');
  }

  // Where the clipboard is closed to pages, the text is shown and chosen, to be copied by hand.
  function copy(button) {
    var table = document.getElementById(button.getAttribute('data-table'));
    var told = button.parentNode.querySelector('[role="status"]');
    var pre = document.getElementById(table.id + '-latex');
    pre.textContent = latexOf(table);
    numberRows(table);
    function choose() {
      pre.parentNode.open = true;
      var range = document.createRange();
      range.selectNodeContents(pre);
      var selection = window.getSelection();
      selection.removeAllRanges();
      selection.addRange(range);
      told.textContent = document.execCommand('copy') ? 'Copied.' : 'The text is chosen; copy it with Ctrl+C.';
    }
    if (!navigator.clipboard) return choose();
    navigator.clipboard.writeText(pre.textContent).then(function () { told.textContent = 'Copied.'; }, choose);
  }

  document.querySelectorAll('table.sortable').forEach(makeSortable);
  document.querySelectorAll('button.copy').forEach(function (button) {
    button.disabled = false;
    button.addEventListener('click', function () { copy(button); });
  });
  var closed = [];
  window.addEventListener('beforeprint', function () {
    closed = Array.prototype.slice.call(document.querySelectorAll('details:not([open])'));
    closed.forEach(function (details) { details.open = true; });
  });
  window.addEventListener('afterprint', function () {
    closed.forEach(function (details) { details.open = false; });
  });
})();
