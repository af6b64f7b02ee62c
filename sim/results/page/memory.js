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

  function overTime(section, run) {
    const r = run.report;
    const track = run.timeline && run.timeline.tracks.find((t) => t.name === 'Live HBM');
    if (!track) return;
    const samples = [];
    for (let i = 0; i < track.samples.length; i += 2) {
      samples.push({time: track.samples[i], value: track.samples[i + 1]});
    }
    if (!samples.length) return;
    samples.push({time: run.timeline.end_ns, value: samples[samples.length - 1].value});
    const margin = {top: 14, right: 20, bottom: 40, left: 80};
    const width = Math.min(draw.width(), 1200), height = 260;
    const svg = section.append('svg').attr('width', width).attr('height', height)
      .attr('role', 'img').attr('aria-label', `live HBM over the step, at most ` +
        units.bytes(d3.max(samples, (s) => s.value)));
    const [unit, name] = units.scaleOf(run.timeline.end_ns, 'time');
    const x = d3.scaleLinear().domain([0, run.timeline.end_ns / unit])
      .range([margin.left, width - margin.right]);
    const y = d3.scaleLinear().domain([0, r.peak_hbm_bytes * 1.08])
      .range([height - margin.bottom, margin.top]);
    const shape = d3.area().curve(d3.curveStepAfter).x((s) => x(s.time / unit)).y0(y(0))
      .y1((s) => y(s.value));
    svg.append('path').datum(samples).attr('d', shape).attr('fill', 'var(--compute)')
      .attr('fill-opacity', 0.35).attr('stroke', 'var(--compute)').attr('data-marks', 'live');
    // Whose it is, as a column where it is most.
    let below = 0;
    const columns = r.memory_at_peak.owners.map((o) => {
      below += o.bytes;
      return {...o, from: below - o.bytes, to: below};
    });
    draw.tips(svg.append('g').selectAll('rect').data(columns).join('rect')
      .attr('x', x(r.memory_at_peak.time_ns / unit)).attr('width', 14)
      .attr('y', (o) => y(o.to)).attr('height', (o) => y(o.from) - y(o.to))
      .attr('fill', (o) => colors(o.owner)), (o) => `${o.owner}: ${units.bytes(o.bytes)}`);
    draw.axis(svg, d3.axisBottom(x).ticks(8), `translate(0,${height - margin.bottom})`);
    draw.axis(svg, d3.axisLeft(y).ticks(5).tickFormat(units.bytes), `translate(${margin.left},0)`);
    svg.append('text').attr('x', width / 2).attr('y', height - 6).attr('text-anchor', 'middle')
      .text(`time (${name})`);
  }
  return {show};
})();
