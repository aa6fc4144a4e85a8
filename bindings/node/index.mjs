// What `import 'zonda'` gives.

import zonda from './index.js';

export const { Zonda, Request, Response, decodeMessage, makeQuery } = zonda;
export default zonda;
