// HBM over the step, and whose it is when most is needed.
const memory = (() => {
  const colors = d3.scaleOrdinal(d3.schemeTableau10);
  function show(into, run) {
    const r = run.report, peak = r.memory_at_peak;
    const section = draw.panel(into, 'Memory',
      `Most is needed ${units.time(peak.time_ns)} into the step` +
      (peak.operation ? `, in ${peak.operation}` : '') +
      `: ${units.bytes(r.peak_hbm_bytes)} of ${units.bytes(r.usable_hbm_bytes)} usable HBM.`);
    overTime(section, run);
    section.append('h3').text('At the peak');
    const owners = peak.owners.map((o) => ({...o, name: o.owner, value: o.bytes, unit: 'bytes',
                                            color: colors(o.owner)}));
    if (peak.fragmentation_bytes > 0) {
      owners.push({name: 'holes between arrays', value: peak.fragmentation_bytes, unit: 'bytes',
                   color: 'var(--rest)'});
    }
    draw.bar(section, owners, r.peak_hbm_bytes || 1, true);
    draw.legend(section, owners.map((o) => ({color: o.color, name: `${o.name} ` +
      `${units.bytes(o.value)} (${units.percent(o.value / (r.peak_hbm_bytes || 1))})`})));
    const arrays = draw.panel(into, 'Arrays at the peak', 'In HBM, with the padding of tiles.');
    draw.table(arrays, [
      {name: 'array', value: (a) => a.name},
      {name: 'owner', value: (a) => a.owner},
      {name: 'shape', value: (a) => a.shape},
      {name: 'bytes', unit: 'bytes', value: (a) => a.bytes},
      {name: 'padding', unit: 'bytes', value: (a) => a.padding_bytes},
      {name: 'scope', value: (a) => a.scope},
      {name: 'source', value: (a) => a.source},
    ], peak.arrays, {label: 'arrays at the peak'});
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
    const owners = tracks.map((t) => t.name.slice(ofOwner.length));
    const margin = {top: 14, right: 20, bottom: 40, left: 80};
    const width = Math.min(draw.width(), 1200), height = 280;
    const svg = section.append('svg').attr('width', width).attr('height', height)
      .attr('role', 'img').attr('aria-label',
        `live HBM over the step by owner, at most ${units.bytes(r.peak_hbm_bytes)}`);
    const [unit, name] = units.scaleOf(data.end_ns, 'time');
    const x = d3.scaleLinear().domain([0, data.end_ns / unit])
      .range([margin.left, width - margin.right]);
    const y = d3.scaleLinear().domain([0, r.peak_hbm_bytes * 1.08])
      .range([height - margin.bottom, margin.top]);
    const layers = d3.stack().keys(owners).value((row, owner) => row.values[owner])(rows);
    const shape = d3.area().curve(d3.curveStepAfter).x((d) => x(d.data.time / unit))
      .y0((d) => y(d[0])).y1((d) => y(d[1]));
    const largest = (layer) => d3.max(layer, (d) => d[1] - d[0]);
    draw.tips(svg.append('g').attr('data-marks', 'live').selectAll('path').data(layers).join('path')
      .attr('d', shape).attr('fill', (layer) => colors(layer.key)).attr('fill-opacity', 0.85),
      (layer) => `${layer.key}: up to ${units.bytes(largest(layer))}`);
    const at = x(r.memory_at_peak.time_ns / unit);
    svg.append('line').attr('x1', at).attr('x2', at).attr('y1', margin.top).attr('y2', y(0))
      .attr('stroke', 'var(--ink)').attr('stroke-dasharray', '3 3');
    svg.append('text').attr('x', at + 4).attr('y', margin.top + 2).text('peak');
    draw.axis(svg, d3.axisBottom(x).ticks(8), `translate(0,${height - margin.bottom})`);
    draw.axis(svg, d3.axisLeft(y).ticks(5).tickFormat(units.bytes), `translate(${margin.left},0)`);
    svg.append('text').attr('x', width / 2).attr('y', height - 6).attr('text-anchor', 'middle')
      .text(`time (${name})`);
  }
  return {show};
})();
