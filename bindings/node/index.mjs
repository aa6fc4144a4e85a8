// What `import 'zonda'` gives.

import zonda from './index.js';

export const { Zonda, Request, Response, decodeMessage, makeQuery } = zonda;
export const { Store, MemoryStore, RedbStore, RedisStore, PostgresStore } = zonda;
export default zonda;
