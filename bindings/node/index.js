'use strict';

// What `require('zonda')` gives.

const { Message, decodeMessage } = require('./lib/message.js');
const { makeQuery } = require('./lib/questions.js');
const { Query } = require('./lib/request.js');
const { Reply } = require('./lib/response.js');
const { MemoryStore, PostgresStore, RedbStore, RedisStore, Store } = require('./lib/store.js');
const { parseRecord, recordText } = require('./lib/zone-text.js');
const { App } = require('./lib/zonda.js');

module.exports = {
  App,
  Message,
  Query,
  Reply,
  Store,
  MemoryStore,
  RedbStore,
  RedisStore,
  PostgresStore,
  decodeMessage,
  makeQuery,
  parseRecord,
  recordText,
  // Former names.
  Zonda: App,
  Request: Query,
  Response: Reply,
};
