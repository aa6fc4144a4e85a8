'use strict';

/** What `Promise.withResolvers` gives, also in Node.js 20, which lacks it. */
function withResolvers() {
  if (Promise.withResolvers !== undefined) return Promise.withResolvers();
  const resolvers = {};
  resolvers.promise = new Promise((resolve, reject) => Object.assign(resolvers, { resolve, reject }));
  return resolvers;
}

module.exports = { withResolvers };
