'use strict';

// Which package has the native half for a system.

/** What the C library of this system is called in names of packages: `gnu` or `musl`. */
function libraryName() {
  const { report } = process;
  const { excludeNetwork } = report;
  report.excludeNetwork = true; // else the names of all hosts that are connected are looked up
  const { glibcVersionRuntime } = report.getReport().header;
  report.excludeNetwork = excludeNetwork;
  return glibcVersionRuntime === undefined ? 'musl' : 'gnu';
}

/** The name of the package with the native half for this system; nothing if there is none. */
function packageName() {
  if (process.platform !== 'linux') return undefined;
  return `zonda-${process.platform}-${process.arch}-${libraryName()}`;
}

module.exports = { libraryName, packageName };
