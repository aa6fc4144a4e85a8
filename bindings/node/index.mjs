// What `import 'zonda'` gives.

import zonda from './index.js';

export const { App, Message, Query, Reply, decodeMessage, makeQuery } = zonda;
export const { parseRecord, recordText } = zonda;
export const { Store, MemoryStore, RedbStore, RedisStore, PostgresStore } = zonda;
// Former names.
export const { Zonda, Request, Response } = zonda;
export default zonda;
