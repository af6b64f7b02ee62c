// Where the step goes: the tables of the summary, every one of which adds up to the step.
const breakdown = (() => {
  const tables = ['op', 'scope', 'source', 'category', 'collective'];
  const titles = {op: 'operation', scope: 'scope', source: 'source', category: 'category',
                  collective: 'collective'};
  function barOf(row) {
    const rest = Math.max(row.time_ns - row.compute_ns - row.exposed_ns, 0);
    return [
      {name: 'compute', value: row.compute_ns, color: 'var(--compute)', unit: 'ns'},
      {name: 'exposed', value: row.exposed_ns, color: 'var(--exposed)', unit: 'ns'},
      {name: 'rest', value: rest, color: 'var(--rest)', unit: 'ns'},
    ];
  }
  function show(into, run) {
    const section = draw.panel(into, 'Where the step goes',
      'The main stream of the device does one thing at a time, so the rows of each table add up ' +
      'to the step. Compute: a unit works. Exposed: the stream waits for the network or another ' +
      'transfer. Rest: it waits for HBM, or for a launch.');
    const area = section.append('div');
    draw.choices(section, 'by', tables, (by) => {
      area.selectAll('*').remove();
      rowsBy(area, run.report, by);
    }, {key: 'by'});
    section.append(() => area.node());
  }
  function rowsBy(box, report, by) {
    const rows = report.rollup[by];
    const largest = d3.max(rows, (r) => r.time_ns) || 1;
    const inner = names.common(rows.map((r) => r.scope || ''));
    const columns = [
      {name: titles[by], value: (r) => r.name},
      {name: 'count', unit: 'count', value: (r) => r.count},
      {name: 'time', unit: 'ns', value: (r) => r.time_ns},
      {name: 'step', unit: 'share', value: (r) => r.share},
      {name: 'compute, exposed, rest', cell: (cell, r) => draw.bar(cell, barOf(r), largest),
       sort: (r) => r.time_ns},
    ];
    if (by === 'op') {
      columns.splice(1, 0, {name: 'category', value: (r) => r.category});
      columns[0].small = (r) => (r.scope ? names.without(r.scope, inner) : '');
      columns[1].color = (r) => colors.of(r.category);
      columns.push({name: 'source', value: (r) => r.source});
    }
    if (by === 'scope') {
      columns.splice(4, 0, {name: 'with inside', unit: 'ns', value: (r) => r.total_ns});
    }
    if (by === 'collective') {
      columns.push({name: 'in flight', unit: 'ns', value: (r) => r.in_flight_ns});
      columns.push({name: 'hidden', unit: 'ns', value: (r) => r.hidden_ns});
    }
    if (inner && by === 'op') {
      box.append('p').attr('class', 'note')
        .text(`Below each operation its scope in ${inner.slice(0, -1)}.`);
    }
    draw.legend(box, barOf({time_ns: 0, compute_ns: 0, exposed_ns: 0}));
    table.show(box, columns, rows, {label: `step by ${titles[by]}`, most: 200});
    box.append('p').attr('class', 'note').attr('data-figure', 'sum')
      .text(`sum ${units.time(d3.sum(rows, (r) => r.time_ns))}`);
  }
  return {show};
})();
