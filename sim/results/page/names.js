// Names of things that are counted together: numbers in which they differ read "*".
const names = (() => {
  const number = /\d+|\*/g;
  const numberless = (name) => name.replace(number, '#');
  // What names of one numberless form have in common.
  function pattern(list) {
    const all = [...new Set(list)].map((name) => name.match(number) || []);
    let i = -1;
    return list.length ? list[0].replace(number, (digits) => {
      ++i;
      return all.every((of) => of[i] === digits) ? digits : '*';
    }) : '';
  }
  const scopes = (path) => path.split('/').filter(Boolean);
  // What all paths begin with, with the slash behind.
  function common(paths) {
    const told = paths.filter(Boolean).map(scopes);
    if (!told.length) return '';
    let n = 0;
    const least = d3.min(told, (of) => of.length);
    while (n < least && told.every((of) => of[n] === told[0][n])) ++n;
    return n ? `${told[0].slice(0, n).join('/')}/` : '';
  }
  const without = (path, prefix) => (`${path}/`.startsWith(prefix) ?
    path.slice(prefix.length) || '.' : path);
  // The innermost scopes, where the whole path would be too long to be read.
  const innermost = 2;
  const tail = (path) => {
    const of = scopes(path);
    return of.length > innermost + 1 ? `…/${of.slice(-innermost).join('/')}` : path;
  };
  // What the compiler says of an operation, where it was asked (--explain).
  const decisions = (report, of) => (report.records || [])
    .filter((d) => of.includes(d.subject)).map((d) => d.text).join('; ');
  return {tail, numberless, pattern, common, without, decisions};
})();
