// What all views share: panels, tooltips, legends, choices, colours.
const draw = (() => {
  const tip = () => d3.select('#tip');
  // `text` is of the datum; also for those who cannot point: every mark has a label.
  function tips(marks, text) {
    marks
      .attr('aria-label', text)
      .on('mousemove.tip', function(d) {
        const event = d3.event;
        const node = tip().attr('hidden', null).text(text(d)).node();
        const x = Math.min(event.clientX + 14, innerWidth - node.offsetWidth - 8);
        const y = Math.min(event.clientY + 14, innerHeight - node.offsetHeight - 8);
        tip().style('left', `${Math.max(x, 4)}px`).style('top', `${Math.max(y, 4)}px`);
      })
      .on('mouseleave.tip', () => tip().attr('hidden', true));
    return marks;
  }

  function panel(into, title, note) {
    const section = into.append('section').attr('class', 'panel').attr('aria-label', title);
    section.append('h2').text(title);
    if (note) section.append('p').attr('class', 'note').text(note);
    return section;
  }

  function legend(into, entries) {
    const items = into.append('ul').attr('class', 'legend').selectAll('li').data(entries).join('li');
    items.append('i').style('background', (e) => e.color);
    items.append('span').text((e) => e.name);
  }

  // Buttons of which one is pressed; calls `choose` with its name now and then.
  function choices(into, label, names, choose) {
    const group = into.append('div').attr('class', 'choices').attr('role', 'group')
      .attr('aria-label', label);
    group.append('span').text(label);
    const buttons = group.selectAll('button').data(names).join('button').attr('type', 'button')
      .text((n) => n)
      .on('click', (n) => press(n));
    function press(name) {
      buttons.attr('aria-pressed', (n) => String(n === name));
      choose(name);
    }
    press(names[0]);
  }

  // A bar of parts [{name, value, color, unit}], as long as its share of `whole`.
  function bar(into, parts, whole, wide) {
    const box = into.append('span').attr('class', wide ? 'bar wide' : 'bar').attr('role', 'img')
      .attr('aria-label', parts.map((p) => `${p.name} ${units.show(p.value, p.unit)}`).join(', '));
    tips(box.selectAll('span').data(parts.filter((p) => p.value > 0)).join('span')
      .style('width', (p) => `${(100 * p.value) / whole}%`)
      .style('background', (p) => p.color),
      (p) => `${p.name}: ${units.show(p.value, p.unit)} (${units.percent(p.value / whole)})`);
    return box;
  }

  // columns: [{name, unit, value: row => ..., cell: (td, row) => ...}]; a click sorts.
  function table(into, columns, rows, options = {}) {
    const most = options.most || 200;
    const element = into.append('table');
    if (options.label) element.attr('aria-label', options.label);
    const isText = (c) => !c.unit || c.unit === 'text';
    const heads = element.append('thead').append('tr').selectAll('th').data(columns).join('th')
      .attr('scope', 'col')
      .classed('text', isText);
    heads.append('button').attr('type', 'button').text((c) => c.name).on('click', sortBy);
    const body = element.append('tbody');
    const rest = into.append('p').attr('class', 'note');
    let order = rows.slice();
    let sorted = null;
    let descending = false;
    function sortBy(column) {
      if (!column.value) return;
      descending = sorted === column ? !descending : !isText(column);
      sorted = column;
      order = rows.slice().sort((a, b) => d3.ascending(column.value(a), column.value(b)));
      if (descending) order.reverse();
      heads.attr('aria-sort', (c) =>
        c !== column ? null : descending ? 'descending' : 'ascending');
      fill();
    }
    function fill() {
      const lines = body.selectAll('tr').data(order.slice(0, most)).join('tr');
      lines.selectAll('td').remove();
      lines.each(function(row) {
        const line = d3.select(this);
        for (const column of columns) {
          const cell = line.append('td').classed('text', isText(column));
          if (column.cell) column.cell(cell, row);
          else cell.text(units.show(column.value(row), column.unit));
        }
        if (options.row) options.row(line, row);
      });
      rest.text(order.length > most ? `${most} of ${order.length} rows` : '');
    }
    fill();
    return element;
  }

  function figures(into, entries) {
    const list = into.append('dl').attr('class', 'figures');
    for (const {name, text, small, id} of entries) {
      const box = list.append('div');
      box.append('dt').text(name);
      const value = box.append('dd').text(text);
      if (id) value.attr('data-figure', id);
      if (small) value.append('small').text(small);
    }
    return list;
  }

  function axis(into, make, transform) {
    return into.append('g').attr('class', 'axis').attr('transform', transform).call(make);
  }

  // The same category has the same colour on all views.
  const palette = d3.scaleOrdinal([...d3.schemeTableau10, ...d3.schemeSet2]);
  const half = /-(start|done)$/;
  const category = (name) => (name ? palette(name.replace(half, '')) : 'var(--rest)');
  const width = () => Math.max(720, document.getElementById('panels').clientWidth - 86);
  return {tips, panel, legend, choices, bar, table, figures, axis, category, width};
})();
