// The head of the summary: what a step takes, what binds it, what was assumed.
const summary = (() => {
  // The step in three parts that add up: compute, exposed communication, the rest.
  function parts(report) {
    const detail = report.detail || {};
    const compute = detail.compute_busy_ns || 0;
    const exposed = report.exposed_communication_ns;
    return [
      {name: 'compute', value: compute, color: 'var(--compute)', unit: 'ns'},
      {name: 'exposed communication', value: exposed, color: 'var(--exposed)', unit: 'ns'},
      {name: 'rest', value: Math.max(report.step_time_ns - compute - exposed, 0),
       color: 'var(--rest)', unit: 'ns'},
    ];
  }
  const boundNames = {compute: 'compute', hbm: 'hbm', ici: 'ici', host: 'host', dcn: 'dcn'};

  // What passes the time on the critical path, the most first.
  const pathNames = {mxu: 'MXU', vpu: 'VPU', hbm: 'HBM', ici: 'ICI', dcn: 'DCN', host: 'PCIe',
                     latency: 'latency'};
  function path(report) {
    const parts = Object.keys(pathNames).map((key) =>
      ({key, name: pathNames[key], value: report.critical_path_ns[key] || 0, unit: 'ns'}))
      .filter((p) => p.value > 0).sort((a, b) => d3.descending(a.value, b.value));
    const shares = units.shares(parts.map((p) => p.value));
    return parts.map((p, i) => ({...p, share: shares[i]}));
  }
  // An empty step is bound by nothing.
  const boundBy = (report) => report.bound_by || '-';

  function show(into, run) {
    const r = run.report;
    const detail = r.detail || {};
    const share = (ns) => units.percent(ns / r.step_time_ns);
    const bounds = Object.keys(boundNames).filter((k) => r.bound_ns[k] > 0);
    const used = r.usable_hbm_bytes ? r.peak_hbm_bytes / r.usable_hbm_bytes : 0;
    const section = draw.panel(into, 'Step');
    draw.figures(section, [
      {name: 'step time', text: units.time(r.step_time_ns), id: 'step_time'},
      {name: 'MFU', text: units.percent(r.mfu), small: `HFU ${units.percent(r.hfu)}`, id: 'mfu'},
      {name: 'bound by', text: boundBy(r), id: 'bound_by',
       small: `critical path: ${path(r).map((p) => `${p.name} ${p.share}`).join(', ') || '-'}`},
      {name: 'compute', text: units.time(detail.compute_busy_ns || 0),
       small: `${share(detail.compute_busy_ns || 0)} of the step, MXU ` +
              `${units.time(detail.mxu_busy_ns || 0)}, VPU ${units.time(detail.vpu_busy_ns || 0)}`,
       id: 'compute'},
      {name: 'communication exposed', text: units.time(r.exposed_communication_ns),
       small: `${share(r.exposed_communication_ns)} of the step, ` +
              `${units.time(r.hidden_communication_ns)} hidden under compute`, id: 'exposed'},
      {name: 'memory', text: units.bytes(r.peak_hbm_bytes),
       small: `peak, ${units.percent(used)} of ${units.bytes(r.usable_hbm_bytes)} usable HBM`,
       id: 'memory'},
      {name: 'work', text: units.flops(r.flops), small: 'per device', id: 'flops'},
      {name: 'slice', text: r.config,
       small: `${r.chips} chips, ${r.devices} devices; ${r.chip_classes} simulated apart`,
       id: 'slice'},
    ]);
    const split = parts(r);
    draw.bar(section, split, r.step_time_ns, true);
    draw.legend(section, split.map((p) => ({
      name: `${p.name} ${units.time(p.value)} (${share(p.value)})`, color: p.color})));

    const low = draw.panel(into, 'Lower bounds',
      'What no schedule can beat: arrays, HBM and links at their nominal rates.');
    draw.table(low, [
      {name: 'bound', value: (b) => boundNames[b]},
      {name: 'time', unit: 'ns', value: (b) => r.bound_ns[b]},
      {name: 'of the step', unit: 'share', value: (b) => r.bound_ns[b] / r.step_time_ns},
      {name: '', cell: (cell, b) => draw.bar(cell, [{name: boundNames[b], value: r.bound_ns[b],
        color: 'var(--compute)', unit: 'ns'}], r.step_time_ns)},
    ], bounds, {label: 'lower bounds'});
    notes(into, r);
  }

  function notes(into, r) {
    if (r.warnings.length) {
      const section = draw.panel(into, 'Warnings');
      section.append('ul').selectAll('li').data(r.warnings).join('li').attr('class', 'warning')
        .text((w) => w);
    }
    const section = draw.panel(into, 'Assumptions', 'What was taken for granted.');
    const order = r.detail && r.detail.device_order ? [`device order: ${r.detail.device_order}`] : [];
    section.append('ul').attr('data-list', 'assumptions').selectAll('li')
      .data([...order, ...r.assumptions]).join('li').text((a) => a);
  }
  return {show, parts, path, boundBy};
})();
