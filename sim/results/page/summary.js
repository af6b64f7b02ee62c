// The head of the summary: what a step takes, what binds it, where it goes, what was assumed.
const summary = (() => {
  // The kernels' share of the step, as the rows of the rollup have it.
  const compute = (report) => (report.detail ? report.detail.compute_busy_ns :
    d3.sum(report.rollup.op, (row) => row.compute_ns));

  // The step in three parts that add up: compute, exposed communication, the rest.
  function parts(report) {
    const busy = compute(report);
    const exposed = report.exposed_communication_ns;
    return [
      {name: 'compute', value: busy, color: 'var(--compute)', unit: 'ns'},
      {name: 'exposed communication', value: exposed, color: 'var(--exposed)', unit: 'ns'},
      {name: 'rest', value: Math.max(report.step_time_ns - busy - exposed, 0),
       color: 'var(--rest)', unit: 'ns'},
    ];
  }

  // The critical path by resource, the largest part first.
  const pathNames = {mxu: 'MXU', vpu: 'VPU', hbm: 'HBM', ici: 'ICI', dcn: 'DCN', host: 'PCIe',
                     latency: 'latency'};
  function path(report) {
    const all = Object.keys(pathNames).map((key) =>
      ({name: pathNames[key], value: report.critical_path_ns[key] || 0, unit: 'ns',
        color: colors.of(pathNames[key])}))
      .filter((p) => p.value > 0).sort((a, b) => d3.descending(a.value, b.value));
    const shares = units.shares(all.map((p) => p.value));
    return all.map((p, i) => ({...p, share: shares[i]}));
  }
  // An empty step is bound by nothing.
  const boundBy = (report) => report.bound_by || '-';

  function show(into, run, open) {
    if (run.panels) panels.show(into, run.panels, open);
    const r = run.report;
    if (!r) return;
    head(into, r);
    const middle = draw.columns(into);
    operations(middle, r);
    collectives.why(middle, r);
    const low = draw.columns(into);
    bounds(low, r);
    memory.owners(draw.panel(low, 'Memory at the peak', null, 'Memory'), r);
    notes(into, r);
  }

  function head(into, r) {
    const detail = r.detail;
    const share = (ns) => units.percent(r.step_time_ns ? ns / r.step_time_ns : 0);
    const used = r.usable_hbm_bytes ? r.peak_hbm_bytes / r.usable_hbm_bytes : 0;
    const section = draw.panel(into, 'Step');
    const engines = detail ? `, MXU ${units.time(detail.mxu_busy_ns)}, ` +
      `VPU ${units.time(detail.vpu_busy_ns)}` : '';
    const split = parts(r), critical = path(r);
    draw.figures(section, [
      {name: 'step time', text: units.time(r.step_time_ns), id: 'step_time'},
      {name: 'MFU', text: units.percent(r.mfu), small: `HFU ${units.percent(r.hfu)}`, id: 'mfu'},
      {name: 'bound by', text: boundBy(r), id: 'bound_by',
       small: `critical path: ${critical.map((p) => `${p.name} ${p.share}`).join(', ') || '-'}`},
      {name: 'compute', text: units.time(split[0].value),
       small: `${share(split[0].value)} of the step${engines}`, id: 'compute'},
      {name: 'communication exposed', text: units.time(r.exposed_communication_ns),
       small: `${share(r.exposed_communication_ns)} of the step, ` +
              `${units.time(r.hidden_communication_ns)} hidden under compute`, id: 'exposed'},
      {name: 'memory', text: units.bytes(r.peak_hbm_bytes),
       small: `peak, ${units.percent(used)} of ${units.bytes(r.usable_hbm_bytes)} usable HBM`,
       id: 'memory'},
      {name: 'work', text: units.flops(r.flops), small: 'per device', id: 'flops'},
      {name: 'slice', text: r.config,
       small: `${units.count(r.chips)} chips, ${units.count(r.devices)} devices; ` +
              `${units.count(r.chip_classes)} simulated` +
              (r.chip_classes < r.chips ? ' (the others are alike)' : ''), id: 'slice'},
    ]);
    const told = (name, list, text) => {
      section.append('h3').text(name);
      draw.legend(section, list.map((p) => ({name: `${p.name} ${text(p)}`, color: p.color})));
      draw.bar(section, list, r.step_time_ns || 1, true);
    };
    told('Critical device, by activity', split, (p) => `${units.time(p.value)} (${share(p.value)})`);
    if (critical.length) {
      told('Critical path, by resource', critical,
        (p) => `${units.time(p.value)} (${p.share})`);
    }
  }

  // Where most of the step goes.
  function operations(into, r) {
    const section = draw.panel(into, 'Top operations', null, 'Breakdown');
    const rows = r.rollup.op.slice(0, 8);
    const inner = names.common(rows.map((row) => row.scope || ''));
    table.show(section, [
      {name: 'operation', value: (row) => row.name, color: (row) => colors.of(row.category), widest: 26,
       small: (row) => [row.category, row.scope ? names.tail(names.without(row.scope, inner)) : '']
         .filter(Boolean).join(', ')},
      {name: 'time', unit: 'ns', value: (row) => row.time_ns},
      {name: 'step', unit: 'share', value: (row) => row.share},
      {name: '', cell: (cell, row) => draw.bar(cell, [{name: row.name, value: row.time_ns,
        unit: 'ns', color: colors.of(row.category)}], d3.max(rows, (o) => o.time_ns) || 1)},
    ], rows, {label: 'top operations', key: ''});
  }

  function bounds(into, r) {
    const low = draw.panel(into, 'Lower bounds',
      'No schedule can beat arrays, HBM and links at their nominal rates.', 'Roofline');
    const list = Object.keys(r.bound_ns).filter((k) => r.bound_ns[k] > 0);
    const hue = {compute: 'compute', hbm: 'HBM', ici: 'ICI', host: 'host', dcn: 'DCN'};
    table.show(low, [
      {name: 'bound', value: (b) => b},
      {name: 'time', unit: 'ns', value: (b) => r.bound_ns[b]},
      {name: 'of the step', unit: 'share', value: (b) => r.bound_ns[b] / r.step_time_ns},
      {name: '', cell: (cell, b) => draw.bar(cell, [{name: b, value: r.bound_ns[b],
        color: colors.of(hue[b]), unit: 'ns'}], r.step_time_ns)},
    ], list, {label: 'lower bounds', key: ''});
  }

  function notes(into, r) {
    if (r.warnings.length) {
      const section = draw.panel(into, 'Warnings');
      section.append('ul').attr('class', 'warning').selectAll('li').data(r.warnings).join('li')
        .text((w) => w);
    }
    const section = draw.panel(into, 'Assumptions', 'Facts that the program does not determine.');
    const order = r.detail && r.detail.device_order ? [`device order: ${r.detail.device_order}`] : [];
    section.append('ul').attr('data-list', 'assumptions').selectAll('li')
      .data([...order, ...r.assumptions]).join('li').text((a) => a);
  }
  return {show, parts, boundBy};
})();
