// Runs beside each other: figures and how far they are from those of one of them, and in which
// rows of the breakdown the difference is.
const compare = (() => {
  const letter = (i) => String.fromCharCode(65 + (i % 26)) + (i >= 26 ? Math.floor(i / 26) : '');
  // More columns than these are read by nobody: then one other is chosen.
  const mostColumns = 4;

  function show(into, runs, open) {
    const all = d3.range(runs.length).filter((i) => runs[i].report);
    const letters = all.map(letter);
    const area = into.append('div');
    const choose = (name) => {
      area.selectAll('*').remove();
      steps(area, runs, all, all[letters.indexOf(name)], open);
    };
    draw.choices(into, 'against', letters, choose, {key: 'against', first: letters[0], most: 8});
    into.append(() => area.node());
  }

  function steps(into, runs, all, base, open) {
    const reports = runs.map((run) => run.report);
    const b = reports[base];
    const panel = draw.panel(into, 'Steps side by side',
      `Differences are from ${letter(base)}. Every step consists of compute, exposed ` +
      'communication and the rest, which explain the difference of two steps.');
    draw.legend(panel, summary.parts(b));
    const longest = d3.max(all, (i) => reports[i].step_time_ns);
    const less = (field) => (i) => (i === base ? null : reports[i][field] - b[field]);
    table.show(panel, [
      {name: '', value: letter},
      {name: 'workload', value: (i) => reports[i].workload},
      {name: 'slice', value: (i) => reports[i].config},
      {name: 'step time', unit: 'ns', value: (i) => reports[i].step_time_ns},
      {name: `against ${letter(base)}`, unit: 'signed ns', value: less('step_time_ns')},
      {name: 'ratio', unit: 'ratio', value: (i) => reports[i].step_time_ns / b.step_time_ns},
      {name: 'MFU', unit: 'share', value: (i) => reports[i].mfu},
      {name: 'exposed', unit: 'ns', value: (i) => reports[i].exposed_communication_ns,
       small: (i) => units.show(less('exposed_communication_ns')(i), 'signed ns')},
      {name: 'memory', unit: 'bytes', value: (i) => reports[i].peak_hbm_bytes,
       small: (i) => units.show(less('peak_hbm_bytes')(i), 'signed bytes')},
      {name: 'bound by', value: (i) => summary.boundBy(reports[i])},
      {name: 'compute, exposed, rest',
       cell: (cell, i) => draw.bar(cell, summary.parts(reports[i]), longest),
       sort: (i) => reports[i].step_time_ns},
    ], all, {label: 'steps', open: (i) => () => open(runs[i].name), key: 'steps'});
    // The sentences of the command line are about the first.
    const told = base === all[0] ? all.filter((i) => runs[i].difference) : [];
    if (told.length) {
      panel.append('ul').attr('data-list', 'differences').selectAll('li').data(told).join('li')
        .text((i) => runs[i].difference);
    }

    const others = all.filter((i) => i !== base);
    if (!others.length) return;
    const section = draw.panel(into, 'Where the difference is',
      `Rows of the breakdown, the time of each against ${letter(base)}: the largest increase ` +
      'comes first, the largest decrease last.');
    const area = section.append('div');
    let by = '', shown = others.slice(0, mostColumns);
    const fill = () => {
      area.selectAll('*').remove();
      rows(area, reports, base, shown, by);
    };
    draw.choices(section, 'by', ['category', 'scope', 'op', 'source', 'collective'], (name) => {
      by = name;
      fill();
    }, {key: 'by'});
    if (others.length > mostColumns) {
      draw.choices(section, 'of', others.map((i) => `${letter(i)}: ${runs[i].name}`), (name) => {
        shown = others.filter((i) => name === `${letter(i)}: ${runs[i].name}`);
        fill();
      }, {key: 'of', most: 0});
    }
    section.append(() => area.node());
  }

  // The same row of several reports: numbers in names may differ.
  function rows(area, reports, base, others, by) {
    const found = new Map();
    for (const i of [base, ...others]) {
      for (const row of reports[i].rollup[by]) {
        const key = `${names.numberless(row.name)}\n${row.category || ''}`;
        if (!found.has(key)) {
          found.set(key, {list: [], category: row.category || '', times: new Map()});
        }
        const at = found.get(key);
        at.list.push(row.name);
        at.times.set(i, (at.times.get(i) || 0) + row.time_ns);
      }
    }
    const of = (row, i) => row.times.get(i) || 0;
    const change = (row, i) => of(row, i) - of(row, base);
    const most = (row) => d3.max(others, (i) => change(row, i));
    const list = [...found.values()].map((row) => ({...row, name: names.pattern(row.list)}))
      .sort((a, b) => d3.descending(most(a), most(b)));
    const largest = d3.max(list, (row) => d3.max(others, (i) => Math.abs(change(row, i)))) || 1;
    const columns = [{name: by === 'op' ? 'operation' : by, value: (row) => row.name}];
    if (by === 'op') columns.push({name: 'category', value: (row) => row.category});
    columns.push({name: letter(base), unit: 'ns', value: (row) => of(row, base)});
    for (const i of others) {
      columns.push({name: letter(i), unit: 'ns', value: (row) => of(row, i)});
      columns.push({name: `${letter(i)} - ${letter(base)}`, unit: 'signed ns',
                    value: (row) => change(row, i)});
    }
    for (const i of others) {
      columns.push({name: `${letter(i)} is longer →`, sort: (row) => change(row, i),
                    cell: (cell, row) => draw.difference(cell, change(row, i), largest, 'ns')});
    }
    table.show(area, columns, list, {label: `steps by ${by}`});
  }
  return {show, letter};
})();
