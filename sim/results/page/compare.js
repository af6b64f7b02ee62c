// Runs beside each other: figures, and where the time of each goes.
const compare = (() => {
  const letter = (i) => String.fromCharCode(65 + (i % 26)) + (i >= 26 ? Math.floor(i / 26) : '');
  function show(into, runs) {
    const reports = runs.map((run) => run.report);
    const steps = draw.panel(into, 'Steps side by side',
      'Every step is compute, exposed communication and the rest; the differences of the three ' +
      'explain the difference of two steps.');
    draw.legend(steps, summary.parts(reports[0]));
    const longest = d3.max(reports, (r) => r.step_time_ns);
    const first = reports[0].step_time_ns;
    draw.table(steps, [
      {name: '', value: (i) => letter(i)},
      {name: 'workload', value: (i) => reports[i].workload},
      {name: 'slice', value: (i) => reports[i].config},
      {name: 'step time', unit: 'ns', value: (i) => reports[i].step_time_ns},
      {name: 'against A', unit: 'share', value: (i) => reports[i].step_time_ns / first},
      {name: 'MFU', unit: 'share', value: (i) => reports[i].mfu},
      {name: 'memory', unit: 'bytes', value: (i) => reports[i].peak_hbm_bytes},
      {name: 'bound by', value: (i) => summary.boundBy(reports[i])},
      {name: 'compute, exposed, rest',
       cell: (cell, i) => draw.bar(cell, summary.parts(reports[i]), longest)},
    ], d3.range(reports.length), {label: 'steps'});
    const section = draw.panel(into, 'Where the steps go');
    const area = section.append('div');
    draw.choices(section, 'by', ['category', 'scope', 'op', 'source', 'collective'], (by) => {
      area.selectAll('*').remove();
      const names = new Map();
      reports.forEach((r, i) => r.rollup[by].forEach((row) => {
        if (!names.has(row.name)) names.set(row.name, {name: row.name, times: reports.map(() => 0)});
        names.get(row.name).times[i] += row.time_ns;
      }));
      const rows = [...names.values()].sort((a, b) => d3.descending(d3.max(a.times), d3.max(b.times)));
      draw.table(area, [
        {name: by === 'op' ? 'operation' : by, value: (row) => row.name},
        ...reports.map((r, i) => ({name: letter(i), unit: 'ns', value: (row) => row.times[i]})),
      ], rows, {label: `steps by ${by}`});
    });
    section.append(() => area.node());
  }
  return {show, letter};
})();
