'use strict';

// What `require('zonda/dinodns')`, and any path below it, gives.

const networks = require('./networks.js');
const packet = require('./packet.js');
const plugins = require('./plugins.js');
const { DefaultRouter } = require('./router.js');
const { DefaultServer, DinoDNS } = require('./server.js');
const utils = require('./utils.js');

const { DNSOverHTTP, DNSOverTCP, DNSOverUDP } = networks;
const { DNSRequest, DNSResponse, PacketWrapper } = packet;
const { DuplicateAnswerForRequest, ModifiedAfterSentError } = packet;
const { Cache, ConsoleLogger, DefaultCache, DefaultStore, Store, registerCache } = plugins;
const { DEFAULT_LOG_FORMAT, DefaultReplacer, LogLevel } = plugins;
const { CombineFlags, HasFlag, RCode, SupportedNetworkType } = utils;
const { getPacketFlags, overrideFlags, overrideId, resolveWildcards } = utils;

const network = { DNSOverHTTP, DNSOverTCP, DNSOverUDP, SupportedNetworkType };
const common = { ...network, DefaultRouter, DefaultServer };
const types = {
  DNSRequest,
  DNSResponse,
  DuplicateAnswerForRequest,
  ModifiedAfterSentError,
  PacketWrapper,
};
const cache = { Cache, DefaultCache };
const storage = { DefaultStore, Store };
const logging = { ConsoleLogger, DEFAULT_LOG_FORMAT, DefaultReplacer, LogLevel };

module.exports = {
  ...common,
  ...types,
  ...cache,
  ...storage,
  ...logging,
  CombineFlags,
  DinoDNS,
  HasFlag,
  RCode,
  common,
  getPacketFlags,
  overrideFlags,
  overrideId,
  plugins: { cache, storage, logging },
  registerCache,
  resolveWildcards,
  types,
};
