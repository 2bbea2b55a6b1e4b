// For clients that reach a sandbox only by its name: the names of COMPAT_DOMAIN are this machine.
'use strict';
const dns = require('dns');

const { lookup } = dns;
dns.lookup = (name, ...rest) => lookup(`.${name}`.endsWith(`.${process.env.COMPAT_DOMAIN}`) ? '127.0.0.1' : name, ...rest);
