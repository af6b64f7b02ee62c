// HBM over the step, and whose it is when most is needed.
const memory = (() => {
  function show(into, run) {
    const r = run.report, peak = r.memory_at_peak;
    const section = draw.panel(into, 'Memory',
      `The peak is ${units.bytes(r.peak_hbm_bytes)} of ${units.bytes(r.usable_hbm_bytes)} usable ` +
      `HBM, ${units.time(peak.time_ns)} into the step` +
      (peak.operation ? `, in ${peak.operation}.` : '.'));
    overTime(section, run);
    section.append('h3').text('At the peak');
    owners(section, r);
    const arrays = draw.panel(into, 'Arrays at the peak', 'In HBM, with the padding of tiles.');
    table.show(arrays, [
      {name: 'array', value: (a) => a.name, small: (a) => a.scope},
      {name: 'owner', value: (a) => a.owner, color: (a) => colors.ofOwner(a.owner)},
      {name: 'shape', value: (a) => a.shape},
      {name: 'bytes', unit: 'bytes', value: (a) => a.bytes},
      {name: 'padding', unit: 'bytes', value: (a) => a.padding_bytes},
      {name: '', cell: (cell, a) => draw.bar(cell, [
        {name: a.name, value: a.bytes, unit: 'bytes', color: colors.ofOwner(a.owner)}],
        d3.max(peak.arrays, (o) => o.bytes) || 1)},
      {name: 'source', value: (a) => a.source},
    ], peak.arrays, {label: 'arrays at the peak'});
    if (r.vmem_at_peak) vmem(into, r.vmem_at_peak);
  }

  // What VMEM holds when most of it is in use.
  function vmem(into, peak) {
    const section = draw.panel(into, 'VMEM at its peak',
      `${units.bytes(peak.bytes)} of ${units.bytes(peak.capacity_bytes)} of VMEM are in use` +
      (peak.operation ? ` in ${peak.operation}` : '') +
      `: ${units.bytes(peak.windows_bytes)} of windows of the kernel, the rest arrays.`);
    table.show(section, [
      {name: 'array', value: (a) => a.name, small: (a) => a.scope},
      {name: 'how it came there', value: (a) => a.owner},
      {name: 'shape', value: (a) => a.shape},
      {name: 'bytes', unit: 'bytes', value: (a) => a.bytes},
      {name: 'padding', unit: 'bytes', value: (a) => a.padding_bytes},
      {name: 'source', value: (a) => a.source},
    ], peak.arrays, {label: 'arrays in VMEM at its peak'});
  }

  // Whose it is when most is needed, and what is free then.
  function owners(section, r) {
    const peak = r.memory_at_peak;
    const list = peak.owners.map((o) => ({name: o.owner, value: o.bytes, unit: 'bytes',
                                          color: colors.ofOwner(o.owner)}));
    if (peak.fragmentation_bytes > 0) {
      list.push({name: 'holes between arrays', value: peak.fragmentation_bytes, unit: 'bytes',
                 color: 'var(--rest)'});
    }
    const whole = r.peak_hbm_bytes || 1;
    draw.legend(section, list.map((o) => ({color: o.color, name: `${o.name} ` +
      `${units.bytes(o.value)} (${units.percent(o.value / whole)})`})));
    draw.bar(section, list, whole, true);
    const usable = r.usable_hbm_bytes || whole;
    section.append('h3').text('Share of usable HBM');
    draw.legend(section, [
      {name: `peak ${units.bytes(r.peak_hbm_bytes)} (${units.percent(r.peak_hbm_bytes / usable)})`,
       color: 'var(--compute)'},
      {name: `free ${units.bytes(Math.max(usable - r.peak_hbm_bytes, 0))}`, color: 'var(--cold)'}]);
    draw.bar(section, [{name: 'peak', value: r.peak_hbm_bytes, unit: 'bytes',
                        color: 'var(--compute)'}], Math.max(usable, whole), true);
  }

  const ofOwner = 'Live HBM: ';

  // [{time, values: {owner: bytes}}], one per moment in which anything changes.
  function changes(tracks, end) {
    const samples = [];
    for (const t of tracks) {
      for (let i = 0; i < t.samples.length; i += 2) {
        samples.push({time: t.samples[i], owner: t.name.slice(ofOwner.length),
                      value: t.samples[i + 1]});
      }
    }
    samples.sort((a, b) => a.time - b.time);
    const rows = [];
    let values = Object.fromEntries(tracks.map((t) => [t.name.slice(ofOwner.length), 0]));
    for (const s of samples) {
      values = {...values, [s.owner]: s.value};
      const last = rows[rows.length - 1];
      if (last && last.time === s.time) last.values = values;
      else rows.push({time: s.time, values});
    }
    if (rows.length) rows.push({time: end, values});
    return rows;
  }

  function overTime(section, run) {
    const r = run.report, data = run.timeline;
    if (!data) return;
    const tracks = data.tracks.filter((t) => t.name.startsWith(ofOwner));
    const rows = changes(tracks, data.end_ns);
    if (!rows.length) return;
    const list = tracks.map((t) => t.name.slice(ofOwner.length));
    draw.legend(section, list.map((name) => ({name, color: colors.ofOwner(name)})));
    const box = section.append('div').attr('class', 'chart');
    const draws = (scale) => {
      box.selectAll('*').remove();
      chart(box, r, data, list, rows, scale === 'usable HBM');
    };
    // With the limit, where that leaves something to be seen.
    const first = r.peak_hbm_bytes * 4 >= r.usable_hbm_bytes ? 'usable HBM' : 'peak';
    draw.choices(section, 'up to', ['peak', 'usable HBM'], draws, {key: 'upto', first});
    section.append(() => box.node());
  }

  function chart(box, r, data, list, rows, limited) {
    const margin = {top: 18, right: 12, bottom: 40, left: 70};
    const width = box.node().clientWidth, height = Math.max(280, Math.min(420, width * 0.2));
    const svg = box.append('svg').attr('width', width).attr('height', height)
      .attr('role', 'img').attr('aria-label',
        `live HBM over the step by owner, at most ${units.bytes(r.peak_hbm_bytes)}`);
    const [unit, name] = units.scaleOf(data.end_ns, 'time');
    const x = d3.scaleLinear().domain([0, data.end_ns / unit])
      .range([margin.left, width - margin.right]);
    const most = Math.max(limited ? r.usable_hbm_bytes : 0, r.peak_hbm_bytes) || 1;
    const y = d3.scaleLinear().domain([0, most * 1.06]).range([height - margin.bottom, margin.top]);
    const layers = d3.stack().keys(list).value((row, owner) => row.values[owner])(rows);
    const shape = d3.area().curve(d3.curveStepAfter).x((d) => x(d.data.time / unit))
      .y0((d) => y(d[0])).y1((d) => y(d[1]));
    const largest = (layer) => d3.max(layer, (d) => d[1] - d[0]);
    svg.append('g').attr('class', 'grid').selectAll('line').data(units.byteTicks(most, 6)).join('line')
      .attr('x1', margin.left).attr('x2', width - margin.right).attr('y1', y).attr('y2', y);
    draw.tips(svg.append('g').attr('data-marks', 'live').selectAll('path').data(layers).join('path')
      .attr('d', shape).attr('fill', (layer) => colors.ofOwner(layer.key)),
      (layer) => `${layer.key}: up to ${units.bytes(largest(layer))}`);
    const at = x(r.memory_at_peak.time_ns / unit);
    svg.append('line').attr('x1', at).attr('x2', at).attr('y1', margin.top).attr('y2', y(0))
      .attr('stroke', 'var(--ink)').attr('stroke-dasharray', '3 3');
    const labels = svg.append('g').attr('data-marks', 'labels');
    if (limited) {
      const line = y(r.usable_hbm_bytes);
      svg.append('line').attr('data-mark', 'usable').attr('x1', margin.left)
        .attr('x2', width - margin.right).attr('y1', line).attr('y2', line)
        .attr('stroke', 'var(--worse)').attr('stroke-width', 1.5);
      labels.append('text').attr('x', width - margin.right).attr('y', line - 4)
        .attr('text-anchor', 'end').text(`usable ${units.bytes(r.usable_hbm_bytes)}`);
    }
    const right = at > width - 90;
    labels.append('text').attr('x', at + (right ? -4 : 4)).attr('y', margin.top - 5)
      .attr('text-anchor', right ? 'end' : 'start').text('peak');
    draw.clear(labels.selectAll('text'), svg);
    draw.axis(svg, d3.axisBottom(x).ticks(draw.ticksIn(width - margin.left)),
      `translate(0,${height - margin.bottom})`);
    draw.axis(svg, d3.axisLeft(y).tickValues(units.byteTicks(most, 6))
      .tickFormat((v) => units.short(v, 'bytes')), `translate(${margin.left},0)`);
    svg.append('text').attr('x', (margin.left + width) / 2).attr('y', height - 6)
      .attr('text-anchor', 'middle').text(`time (${name})`);
  }
  return {show, owners};
})();
