// What `import 'zonda/dinodns'`, and any path below it, gives.

import dinodns from './index.js';

export const {
  Cache,
  CombineFlags,
  ConsoleLogger,
  DEFAULT_LOG_FORMAT,
  DNSOverHTTP,
  DNSOverTCP,
  DNSOverUDP,
  DNSRequest,
  DNSResponse,
  DefaultCache,
  DefaultReplacer,
  DefaultRouter,
  DefaultServer,
  DefaultStore,
  DinoDNS,
  DuplicateAnswerForRequest,
  HasFlag,
  LogLevel,
  ModifiedAfterSentError,
  PacketWrapper,
  RCode,
  Store,
  SupportedNetworkType,
  common,
  getPacketFlags,
  overrideFlags,
  overrideId,
  plugins,
  registerCache,
  resolveWildcards,
  types,
} = dinodns;
export default dinodns;
