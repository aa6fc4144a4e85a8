'use strict';

// Small things that DinoDNS programs use.

/** Response codes, by the numbers that they have (rfc2136#2.2): DinoDNS is one short from 8 on. */
const RCode = {};
[
  'NO_ERROR',
  'FORMAT_ERROR',
  'SERVER_FAILURE',
  'NX_DOMAIN',
  'NOT_IMPLEMENTED',
  'REFUSED',
  'YX_DOMAIN',
  'YX_RR_SET',
  'NX_RR_SET',
  'NOT_AUTH',
  'NOT_ZONE',
].forEach((word, number) => {
  RCode[word] = number;
  RCode[number] = word;
});

/** Flags made of several. */
function CombineFlags(flags) {
  return flags.reduce((all, flag) => all | flag, 0);
}

/** Whether all bits of a flag are set. */
function HasFlag(flags, flag) {
  return (flags & flag) === flag;
}

/** The flags of a message in wire form. */
function getPacketFlags(buffer) {
  return buffer.readUInt16BE(2);
}

/** A copy of a message with another number. */
function overrideId(buffer, id) {
  const copy = Buffer.from(buffer);
  copy.writeUInt16BE(id, 0);
  return copy;
}

/** A copy of a message with other flags. */
function overrideFlags(buffer, flags) {
  const copy = Buffer.from(buffer);
  copy.writeUInt16BE(flags, 2);
  return copy;
}

/** A pattern whose leading `*` is a label, or is left out if that is empty. */
function resolveWildcards(label, pattern) {
  const labels = pattern.split('.');
  if (labels[0] === '*') {
    if (label === '') labels.shift();
    else labels[0] = label;
  }
  return labels.join('.');
}

/** A name as it is looked up: in lower case, without a final dot. */
function plainName(name) {
  const lower = String(name).toLowerCase();
  return lower.length > 1 && lower.endsWith('.') ? lower.slice(0, -1) : lower;
}

/** How a query came. */
const SupportedNetworkType = { UDP: 'UDP', TCP: 'TCP', TLS: 'TLS', HTTP: 'HTTP', HTTPS: 'HTTPS' };

module.exports = {
  CombineFlags,
  HasFlag,
  RCode,
  SupportedNetworkType,
  getPacketFlags,
  overrideFlags,
  overrideId,
  plainName,
  resolveWildcards,
};
