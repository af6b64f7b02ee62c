// Every collective: how long it takes, what hides it, and why the rest is exposed.
const collectives = (() => {
  function show(into, run) {
    const r = run.report;
    const section = draw.panel(into, 'Collectives',
      'Times of all executions; simulated, expected and bound are of one. Expected is the closed ' +
      'form of the algorithm, the bound what no algorithm can beat on those links.');
    if (!r.collectives.length) {
      section.append('p').text('The program has none.');
      return;
    }
    const largest = d3.max(r.collectives, (c) => c.total_ns);
    const parts = (c) => [
      {name: 'exposed', value: c.exposed_ns, color: 'var(--exposed)', unit: 'ns'},
      {name: 'hidden', value: c.hidden_ns, color: 'var(--hidden)', unit: 'ns'},
    ];
    draw.legend(section, parts({exposed_ns: 0, hidden_ns: 0}));
    draw.table(section, [
      {name: 'collective', value: (c) => c.name},
      {name: 'count', unit: 'count', value: (c) => c.count},
      {name: 'bytes', unit: 'bytes', value: (c) => c.bytes},
      {name: 'simulated', unit: 'ns', value: (c) => (c.count ? c.total_ns / c.count : 0)},
      {name: 'expected', unit: 'ns', value: (c) => c.expected_ns},
      {name: 'bound', unit: 'ns', value: (c) => c.bound_ns},
      {name: 'exposed', unit: 'share', value: (c) => (c.total_ns ? c.exposed_ns / c.total_ns : 0)},
      {name: '', cell: (cell, c) => draw.bar(cell, parts(c), largest)},
      {name: 'why exposed', value: (c) => why(c)},
      {name: 'hidden by', value: (c) => c.covered_by.map((o) =>
        `${o.name} ${units.time(o.hidden_ns)}`).join(', ')},
      {name: 'algorithm', value: (c) => c.algorithm + (c.axes ? `, axes ${c.axes}` : '')},
    ], r.collectives, {label: 'collectives'});
  }
  const why = (c) => c.exposed_by.map((e) =>
    `${e.reason} ${units.time(e.exposed_ns)}${e.text ? `: ${e.text}` : ''}`).join('; ');
  return {show};
})();
