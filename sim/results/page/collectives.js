// Collectives: how long they take, what hides them, and why the rest is exposed. Those of layers
// that differ in nothing but numbers are one row, which unfolds.
const collectives = (() => {
  const kindOf = (c) => [c.kind, names.numberless(c.name), names.numberless(c.scope || ''),
    c.source, c.bytes, c.group_size, c.axes, c.algorithm].join('\n');

  // Sums of what is of the same numberless form, most first.
  function summed(lists, key, value, text) {
    const sums = d3.nest().key((o) => key(o)).entries(lists.flat())
      .map(({values: of}) => ({...of[0], ...text(of), [value]: d3.sum(of, (o) => o[value])}));
    return sums.sort((a, b) => d3.descending(a[value], b[value]));
  }

  // Rows as the report has them, `inside` the ones that are counted together.
  function grouped(list) {
    return d3.nest().key(kindOf).entries(list).map(({values}) => {
      if (values.length === 1) return {...values[0], inside: values};
      const count = d3.sum(values, (c) => c.count);
      const mean = (field) => d3.sum(values, (c) => c[field] * c.count) / (count || 1);
      return {
        ...values[0], inside: values, count,
        name: names.pattern(values.map((c) => c.name)),
        scope: names.pattern(values.map((c) => c.scope || '')),
        total_ns: d3.sum(values, (c) => c.total_ns),
        hidden_ns: d3.sum(values, (c) => c.hidden_ns),
        exposed_ns: d3.sum(values, (c) => c.exposed_ns),
        expected_ns: mean('expected_ns'), bound_ns: mean('bound_ns'),
        covered_by: summed(values.map((c) => c.covered_by), (o) => names.numberless(o.name),
          'hidden_ns', (of) => ({name: names.pattern(of.map((o) => o.name))})),
        exposed_by: summed(values.map((c) => c.exposed_by),
          (e) => `${e.reason}\n${names.numberless(e.text)}`, 'exposed_ns',
          (of) => ({text: names.pattern(of.map((e) => e.text))})),
      };
    }).sort((a, b) => d3.descending(a.total_ns, b.total_ns));
  }

  const parts = (c) => [
    {name: 'exposed', value: c.exposed_ns, color: 'var(--exposed)', unit: 'ns'},
    {name: 'hidden', value: c.hidden_ns, color: 'var(--hidden)', unit: 'ns'},
  ];
  const reasons = (c) => c.exposed_by.map((e) =>
    `${e.reason} ${units.time(e.exposed_ns)}${e.text ? `: ${e.text}` : ''}`).join('; ');

  const mostCoverers = 3;
  const coverers = (c) => c.covered_by.slice(0, mostCoverers)
    .map((o) => `${o.name} ${units.time(o.hidden_ns)}`)
    .concat(c.covered_by.length > mostCoverers ?
      `${c.covered_by.length - mostCoverers} more` : [])
    .join(', ');

  function show(into, run) {
    const r = run.report;
    const section = draw.panel(into, 'Collectives',
      'Times add up all executions; simulated, expected and bound are of one execution. Expected ' +
      'is the closed form of the algorithm; no algorithm can beat the bound on these links. ' +
      'Collectives of unrolled layers share a row.');
    if (!r.collectives.length) {
      section.append('p').text('The program has no collectives.');
      return;
    }
    const rows = grouped(r.collectives);
    const inner = names.common(rows.map((c) => c.scope || ''));
    draw.legend(section, parts({exposed_ns: 0, hidden_ns: 0}));
    const area = section.append('div');
    const kinds = [...new Set(rows.map((c) => c.kind))].sort();
    const fill = (kind) => {
      area.selectAll('*').remove();
      const shown = rows.filter((c) => kind === 'all' || c.kind === kind);
      const largest = d3.max(shown, (c) => c.total_ns) || 1;
      table.show(area, [
        {name: 'collective', value: (c) => c.name, color: (c) => colors.of(c.kind), widest: 22,
         small: (c) => (c.scope ? names.without(c.scope, inner) : '')},
        {name: 'count', unit: 'count', value: (c) => c.count},
        {name: 'bytes', unit: 'bytes', value: (c) => c.bytes},
        {name: 'simulated', unit: 'ns', value: (c) => (c.count ? c.total_ns / c.count : 0)},
        {name: 'expected', unit: 'ns', value: (c) => c.expected_ns},
        {name: 'bound', unit: 'ns', value: (c) => c.bound_ns},
        {name: 'exposed', unit: 'share',
         value: (c) => (c.total_ns ? c.exposed_ns / c.total_ns : 0)},
        {name: 'exposed, hidden', cell: (cell, c) => draw.bar(cell, parts(c), largest),
         sort: (c) => c.exposed_ns},
        {name: 'why exposed', value: reasons,
         widest: 30, small: (c) => (c.covered_by.length ? `hidden by ${coverers(c)}` : '')},
        {name: 'algorithm', value: (c) => c.algorithm + (c.axes ? `, axes ${c.axes}` : ''),
         small: (c) => c.source || '', widest: 20},
      ], shown, {label: 'collectives', inside: (c) => c.inside || []});
    };
    if (kinds.length > 1) {
      draw.choices(section, 'kind', ['all', ...kinds], fill, {key: 'kind'});
    } else {
      fill('all');
    }
    section.append(() => area.node());
  }

  // Of the summary: those that cost most, and their first reason.
  function why(into, r) {
    const section = draw.panel(into, 'Exposed communication', null, 'Collectives');
    const rows = grouped(r.collectives).filter((c) => c.exposed_ns > 0)
      .sort((a, b) => d3.descending(a.exposed_ns, b.exposed_ns)).slice(0, 6);
    if (!rows.length) {
      section.append('p').text(r.collectives.length ? 'All communication is hidden under compute.' :
        'The program has no collectives.');
      return;
    }
    const inner = names.common(rows.map((c) => c.scope || ''));
    table.show(section, [
      {name: 'collective', value: (c) => c.name, color: (c) => colors.of(c.kind), widest: 20,
       small: (c) => (c.scope ? names.tail(names.without(c.scope, inner)) : '')},
      {name: 'exposed', unit: 'ns', value: (c) => c.exposed_ns},
      {name: 'step', unit: 'share', value: (c) => c.exposed_ns / r.step_time_ns},
      {name: 'most of it because', value: (c) => {
        const e = c.exposed_by[0];
        return e ? `${e.reason}${e.text ? `: ${e.text}` : ''}` : 'not told';
      }},
    ], rows, {label: 'exposed communication', key: ''});
    section.append('p').attr('class', 'note')
      .text('tpusim advise simulates what would shorten the step.');
  }
  return {show, why, grouped};
})();
