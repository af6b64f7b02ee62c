// Tables: columns as wide as what is in them, bars in the room that is left, a click on a head
// sorts. Long ones can be filtered.
//
//   columns: [{name, unit, value: row => ..., small: row => what stands below it in small letters,
//              color: row => of a swatch before it, widest: in characters,
//              cell: (td, row) => ..., sort: row => ...}]
//   options: label, most (rows shown at first), key (keeps the filter in the address),
//            inside (row => rows that it stands for), open (row => what a click on it does, or null)
const table = (() => {
  const isText = (c) => !c.unit || c.unit === 'text';
  // Characters of a column of texts: longer ones are broken, short ones are not.
  const short = 20, widest = () => (innerWidth < 700 ? 15 : 34), fromSoMany = 12;

  // Paths may be broken behind their slashes.
  function write(node, text) {
    text.split(/(?<=\/)/).forEach((part, i) => {
      if (i) node.append('wbr');
      node.append(() => document.createTextNode(part));
    });
  }

  const textOf = (column, row) => {
    const text = column.value ? units.show(column.value(row), column.unit) : '';
    return text === '' || text === null || text === undefined ? '' : String(text);
  };

  function show(into, columns, rows, options = {}) {
    let most = options.most || 100;
    const key = options.key === undefined ? 'filter' : options.key;
    const filterable = key && rows.length >= fromSoMany;
    const bar = filterable ? into.append('div').attr('class', 'choices') : null;
    const area = into.append('div').attr('class', 'scroll').attr('tabindex', 0)
      .attr('role', 'region').attr('aria-label', `${options.label || ''} (table)`);
    const element = area.append('table').classed('fill', columns.some((c) => c.cell));
    if (options.label) element.attr('aria-label', options.label);
    const heads = element.append('thead').append('tr').selectAll('th').data(columns).join('th')
      .attr('scope', 'col')
      .classed('text', isText).classed('bars', (c) => !!c.cell);
    heads.append('button').attr('type', 'button').text((c) => c.name).on('click', sortBy);
    const body = element.append('tbody');
    const rest = into.append('p').attr('class', 'note');
    const opened = new Set();
    let order = rows.slice();
    let sorted = null;
    let descending = false;
    let wanted = '';
    const lengths = new Map(columns.map((c) => [c, c.cell || !isText(c) ? 0 :
      Math.max(c.name.length, d3.max(rows, (r) =>
        Math.max(textOf(c, r).length, c.small ? 0.85 * c.small(r).length : 0)) || 0)]));
    const widthOf = new Map(columns.map((c) =>
      [c, Math.min(c.widest || Infinity, widest(), lengths.get(c))]));

    function sortBy(column) {
      const by = column.sort || column.value;
      if (!by) return;
      descending = sorted === column ? !descending : !isText(column);
      sorted = column;
      order = rows.slice().sort((a, b) => d3.ascending(by(a), by(b)));
      if (descending) order.reverse();
      heads.attr('aria-sort', (c) =>
        c !== column ? null : descending ? 'descending' : 'ascending');
      fill();
    }
    const matches = (row) => columns.some((c) => isText(c) &&
      `${textOf(c, row)}\n${c.small ? c.small(row) : ''}`.toLowerCase().includes(wanted));
    const fits = (row) => !wanted || matches(row) ||
      (options.inside && options.inside(row).some(matches));

    function line(row, depth) {
      const at = body.append('tr').classed('inside', depth > 0);
      const inside = options.inside && depth === 0 ? options.inside(row) : [];
      columns.forEach((column, i) => {
        const cell = at.append('td').classed('text', isText(column)).classed('bars', !!column.cell);
        cell.classed('short', isText(column) && lengths.get(column) <= Math.min(short, widest()));
        // Letters are narrower than digits, of which there are few in texts.
        if (widthOf.get(column)) {
          cell.style('min-width', `calc(${(0.92 * widthOf.get(column)).toFixed(1)}ch + 1.2rem)`);
        }
        if (column.cell) {
          column.cell(cell, row);
          return;
        }
        if (column.color) {
          cell.append('i').attr('class', 'swatch').style('background', column.color(row));
        }
        const open = i === 0 && options.open ? options.open(row) : null;
        const text = textOf(column, row);
        if (open) {
          cell.append('button').attr('type', 'button').attr('class', 'link').text(text)
            .on('click', open);
        } else {
          write(cell.append('span'), text);
        }
        if (i === 0 && inside.length > 1) {
          cell.append('button').attr('type', 'button').attr('class', 'unfold')
            .attr('aria-expanded', String(opened.has(row)))
            .attr('aria-label', `${inside.length} of ${text}`)
            .on('click', () => {
              if (!opened.delete(row)) opened.add(row);
              fill();
            });
        }
        const small = column.small ? column.small(row) : '';
        if (small) write(cell.append('small'), small);
      });
      if (opened.has(row)) inside.forEach((r) => line(r, depth + 1));
    }
    function fill() {
      body.selectAll('*').remove();
      const seen = order.filter(fits);
      seen.slice(0, most).forEach((row) => line(row, 0));
      rest.selectAll('*').remove();
      rest.text(seen.length < rows.length ?
        `${seen.length} of ${rows.length} rows fit the filter. ` : '');
      if (seen.length > most) {
        rest.append('span').text(`${most} of ${seen.length} rows are shown. `);
        rest.append('button').attr('type', 'button').text('show all').on('click', () => {
          most = Infinity;
          fill();
        });
      }
    }
    if (filterable) {
      wanted = address.get(key).toLowerCase();
      bar.append('input').attr('type', 'search').attr('placeholder', 'filter')
        .attr('aria-label', `filter ${options.label || ''}`).property('value', address.get(key))
        .on('input', function() {
          wanted = this.value.trim().toLowerCase();
          address.set({[key]: this.value.trim()});
          fill();
        });
    }
    fill();
    return element;
  }
  return {show};
})();
