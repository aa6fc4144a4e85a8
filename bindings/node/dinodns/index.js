'use strict';

// What `require('zonda/dinodns')`, and any path below it, gives.

const { EventEmitter } = require('node:events');
const networks = require('./networks.js');
const packet = require('./packet.js');
const plugins = require('./plugins.js');
const { DefaultRouter, domainToRegexp, match } = require('./router.js');
const serializers = require('./serializers.js');
const { DefaultServer, DinoDNS } = require('./server.js');
const utils = require('./utils.js');

const { DNSOverHTTP, DNSOverTCP, DNSOverUDP } = networks;
const { DNSRequest, DNSResponse, PacketWrapper } = packet;
const { DuplicateAnswerForRequest, ModifiedAfterSentError } = packet;
const { DNSPacketSerializer, TCPSerializer, UDPSerializer } = serializers;
const { Cache, ConsoleLogger, DefaultCache, DefaultStore, Store, Trie, registerCache } = plugins;
const { DEFAULT_LOG_FORMAT, DefaultReplacer, LogLevel } = plugins;
const { CombineFlags, HasFlag, RCode, SupportedNetworkType } = utils;
const { getPacketFlags, overrideFlags, overrideId, resolveWildcards } = utils;

/** An emitter, whose events have types for TypeScript. */
class TypedEventEmitter extends EventEmitter {}

const common = {
  DNSOverHTTP,
  DNSOverTCP,
  DNSOverUDP,
  DNSPacketSerializer,
  DefaultRouter,
  DefaultServer,
  SupportedNetworkType,
  TCPSerializer,
  UDPSerializer,
};
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
  Trie,
  TypedEventEmitter,
  cache,
  common,
  domainToRegexp,
  getPacketFlags,
  logging,
  match,
  overrideFlags,
  overrideId,
  plugins: { cache, logging, storage },
  registerCache,
  resolveWildcards,
  storage,
  types,
};
