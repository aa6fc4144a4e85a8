'use strict';

// What `require('zonda')` gives.

const { decodeMessage } = require('./lib/message.js');
const { Request } = require('./lib/request.js');
const { Response } = require('./lib/response.js');
const { Zonda, makeQuery } = require('./lib/zonda.js');

module.exports = { Zonda, Request, Response, decodeMessage, makeQuery };
