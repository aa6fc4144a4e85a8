// The types of `import 'zonda/dinodns'`, and of any path below it.

export * from './index.js';
import * as dinodns from './index.js';
export default dinodns;
