'use strict';
// Quantities as the summary prints them: four significant digits in the largest unit that leaves
// at least one.
const units = (() => {
  const tables = {
    time: [[1, 'ns'], [1e3, 'us'], [1e6, 'ms'], [1e9, 's']],
    bytes: [[1, 'B'], [2 ** 10, 'KiB'], [2 ** 20, 'MiB'], [2 ** 30, 'GiB'], [2 ** 40, 'TiB'],
            [2 ** 50, 'PiB']],
    rates: [[1, 'B'], [1e3, 'kB'], [1e6, 'MB'], [1e9, 'GB'], [1e12, 'TB'], [1e15, 'PB']],
    flops: [[1, 'FLOP'], [1e3, 'kFLOP'], [1e6, 'MFLOP'], [1e9, 'GFLOP'], [1e12, 'TFLOP'],
            [1e15, 'PFLOP']],
  };
  function inUnits(value, table) {
    const magnitude = Math.abs(value);
    let i = 0;
    while (i + 1 < table.length && magnitude >= 0.99995 * table[i + 1][0]) ++i;
    const scaled = value / table[i][0];
    const size = Math.abs(scaled);
    if (i === 0 && Number.isInteger(value)) return `${value} ${table[0][1]}`;
    const decimals = size >= 999.95 ? 0 : size >= 99.995 ? 1 : size >= 9.9995 ? 2 : 3;
    return `${fixed(scaled, decimals)} ${table[i][1]}`;
  }
  // As C++ rounds: of two decimals that are as near, the even one.
  function fixed(value, decimals) {
    const text = value.toFixed(decimals);
    const exact = Math.abs(value) < 1e21 ? value.toFixed(60) : text;
    const point = exact.indexOf('.') + 1 + decimals;
    if (!/^50*$/.test(exact.slice(point)) || Number(text[text.length - 1]) % 2 === 0) return text;
    return exact.slice(0, decimals ? point : point - 1);
  }
  const time = (ns) => inUnits(ns, tables.time);
  const bytes = (b) => inUnits(b, tables.bytes);
  const flops = (f) => inUnits(f, tables.flops);
  const percent = (share) => `${fixed(100 * share, 1)}%`;
  const count = (n) => n.toLocaleString('en-US');
  // By the unit that data names.
  const by = {
    ns: time, bytes, flops, share: percent, count,
    'flops/s': (f) => `${flops(f)}/s`, 'bytes/s': (b) => `${inUnits(b, tables.rates)}/s`,
    text: (t) => t, ratio: (r) => `${fixed(r, 3)}x`, number: (n) => d3.format('.4~g')(n),
  };
  const show = (value, unit) =>
    value === null || value === undefined ? '' : (by[unit] || by.text)(value);
  const signed = (value, unit) => (value > 0 ? '+' : '') + show(value, unit);
  by['signed ns'] = (ns) => signed(ns, 'ns');
  by['signed bytes'] = (b) => signed(b, 'bytes');
  // Of round values, without zeros at the end: "4 GiB", "1.5 MiB".
  const short = (value, unit) => show(value, unit)
    .replace(/(\.\d*?)0+(?= |%|$)/, '$1').replace(/\.(?= |%|$)/, '');
  // Ticks up to `largest`, about `count`, at powers of two.
  function byteTicks(largest, count) {
    const step = 2 ** Math.ceil(Math.log2(Math.max(largest, 1) / Math.max(count, 1)));
    return d3.range(0, largest + step / 1e6, step);
  }
  // For axes, which have one unit: what to divide by, and its name.
  const scaleOf = (largest, kind) =>
    tables[kind].filter(([scale]) => largest >= scale).pop() || tables[kind][0];
    // Shares of the sum, in tenths of a percent that add up to the whole: what was cut off goes to
  // those that lost most, as in the terminal.
  function shares(values) {
    const whole = d3.sum(values);
    if (whole <= 0) return values.map(() => percent(0));
    const exact = values.map((v) => (v / whole) * 1000);
    const tenths = exact.map(Math.floor);
    const left = 1000 - d3.sum(tenths);
    const order = d3.range(values.length)
      .sort((a, b) => d3.descending(exact[a] - tenths[a], exact[b] - tenths[b]) || a - b);
    for (const i of order.slice(0, left)) ++tenths[i];
    return tenths.map((t) => `${Math.floor(t / 10)}.${t % 10}%`);
  }
  return {time, bytes, flops, percent, shares, count, show, signed, short, byteTicks, scaleOf};
})();
