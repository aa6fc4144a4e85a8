// The types of `import 'zonda'`.

export * from './index.js';
import * as zonda from './index.js';
export default zonda;
