'use strict';

// What `require('zonda')` gives.

const { decodeMessage } = require('./lib/message.js');
const { Request } = require('./lib/request.js');
const { Response } = require('./lib/response.js');
const { MemoryStore, PostgresStore, RedbStore, RedisStore, Store } = require('./lib/store.js');
const { Zonda, makeQuery } = require('./lib/zonda.js');

module.exports = {
  Zonda,
  Request,
  Response,
  Store,
  MemoryStore,
  RedbStore,
  RedisStore,
  PostgresStore,
  decodeMessage,
  makeQuery,
};
