// One colour for each category, the same on every view and page. Hues say of what family it is:
// blue computes, green moves data on the chip, warm ones communicate, violet is the host, grey only
// holds others together. page.css has the colours, for light and dark.
const colors = (() => {
  const families = [
    ['matrix', ['convolution fusion', 'convolution', 'dot', 'ragged-dot']],
    ['kernel', ['custom-call', 'custom fusion', 'cholesky', 'triangular-solve', 'fft']],
    ['loop', ['loop fusion']],
    ['reduction', ['input fusion', 'reduce', 'reduce-window', 'sort']],
    ['elementwise', ['non-fusion elementwise', 'rng', 'rng-bit-generator',
                     'rng-get-and-update-state', 'reduce-precision']],
    ['copy', ['copy', 'data formatting', 'concatenate', 'pad', 'dynamic-reshape']],
    ['gather', ['gather', 'scatter', 'sparsecore']],
    ['slice', ['slice', 'dynamic-slice', 'dynamic-update-slice', 'broadcast', 'iota']],
    ['all-reduce', ['all-reduce']],
    ['reduce-scatter', ['reduce-scatter']],
    ['all-gather', ['all-gather']],
    ['all-to-all', ['all-to-all', 'ragged-all-to-all']],
    ['permute', ['collective-permute', 'collective-broadcast']],
    ['exposed', ['send', 'recv', 'dcn', 'exposed', 'exposed communication', 'ICI', 'DCN']],
    ['hidden', ['hidden']],
    ['host', ['copy to host', 'copy from host', 'infeed', 'outfeed', 'host', 'PCIe']],
    ['compute', ['compute', 'MXU']],
    ['elementwise', ['VPU']],
    ['copy', ['HBM', 'hbm', 'memory and launches']],
    ['rest', ['while', 'conditional', 'call', 'idle', 'rest', 'latency']],
  ];
  const order = new Map(), variable = new Map();
  families.forEach(([name, members], i) => members.forEach((m) => {
    variable.set(m, name);
    order.set(m, i);
  }));
  // What is waited for has the colour of the thing itself.
  const plain = (name) => name.replace(/^exposed (?=.)/, '').replace(/-(start|done)$/, '');
  const nameOf = (name) => variable.get(name) || variable.get(plain(name)) || 'other';
  const of = (name) => `var(--${name ? nameOf(name) : 'rest'})`;

  // Whose memory it is.
  const owners = ['parameters', 'optimizer state', 'gradients', 'saved activations', 'arguments',
                  'temporaries', 'results', 'constants'];
  const ofOwner = (name) => {
    const i = owners.indexOf(name);
    return i < 0 ? 'var(--other)' : `var(--owner-${i})`;
  };

  // Groups that no category names, such as slices: told apart by their place.
  const group = (names) => {
    const place = d3.scaleOrdinal(d3.range(8).map((i) => `var(--owner-${i})`)).domain(names);
    return (name) => place(name || '');
  };

  const valueOf = (color) => {
    const name = /^var\((--[^)]+)\)$/.exec(color);
    return name ? getComputedStyle(document.documentElement).getPropertyValue(name[1]).trim() :
      color;
  };
  // Dark or light text, whichever is read better on that ground.
  const ink = (color) => (d3.lab(valueOf(color)).l > 58 ? '#14181c' : '#ffffff');

  const rank = (name) => (order.has(name) ? order.get(name) : families.length);
  // Entries of a key, those of a family beside each other.
  const key = (names) => [...new Set(names.filter(Boolean).map(plain))]
    .sort((a, b) => d3.ascending(rank(a), rank(b)) || d3.ascending(a, b))
    .map((name) => ({name, color: of(name)}));
  return {of, ofOwner, group, valueOf, ink, key, plain};
})();
