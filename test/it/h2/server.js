// Servers of HTTP/2 and gRPC in the test's internet: node server.js KEY CERTIFICATE PORT GRPC-PORT CLEAR-PORT
// What they saw is told when "seen" comes on the standard input.
'use strict'
const fs = require('fs')
const http2 = require('http2')
const readline = require('readline')
const zlib = require('zlib')
const grpc = require('@grpc/grpc-js')

let seen = []

// ---- HTTP/2

const answers = {
  '/echo': (stream, headers) => {
    const value = headers['x-key'] || ''
    stream.respond({ ':status': 200, 'x-echo': value }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-tail': `<${value}>`, plain: 'yes' }))
    const bytes = Buffer.from(`before ${value} after`)
    const next = at => at < bytes.length ? stream.write(bytes.subarray(at, at + 1), () => next(at + 1)) : stream.end()
    next(0)
  },
  '/gzip': (stream, headers) => {
    stream.respond({ ':status': 200, 'content-encoding': 'gzip' })
    stream.end(zlib.gzipSync(headers['x-key'] || ''))
  },
  '/reset': stream => stream.close(http2.constants.NGHTTP2_ENHANCE_YOUR_CALM),
  '/half': stream => {
    stream.respond({ ':status': 200 })
    stream.write('some', () => stream.destroy(new Error('as asked')))
  },
  '/goaway': stream => {
    stream.session.close()
    stream.respond({ ':status': 200 })
    stream.end('the last')
  },
  '/die': stream => stream.session.destroy(),
  '/early': stream => { // does not read what comes
    stream.respond({ ':status': 413 })
    stream.end('too much', () => stream.close(http2.constants.NGHTTP2_NO_ERROR))
  },
  '/big': (stream, headers) => {
    stream.respond({ ':status': 200, 'content-length': headers['x-size'] })
    let left = Number(headers['x-size'])
    const piece = Buffer.alloc(65536, 'b')
    const more = () => {
      while (left > 0) {
        const n = Math.min(left, piece.length)
        left -= n
        if (!stream.write(piece.subarray(0, n))) return stream.once('drain', more)
      }
      stream.end()
    }
    more()
  },
  '/huge-head': stream => {
    stream.respond({ ':status': 200, ...Object.fromEntries([...Array(25).keys()].map(i => [`x-${i}`, 'h'.repeat(2000)])) })
    stream.end()
  },
  '/empty': stream => stream.respond({ ':status': 204, 'x-a': 'b' }, { endStream: true }),
  '/hints': stream => {
    stream.additionalHeaders({ ':status': 103, link: '</a.css>' })
    stream.respond({ ':status': 200 })
    stream.end('hinted')
  },
}

function serve(stream, headers) {
  const what = { method: headers[':method'], path: headers[':path'], authority: headers[':authority'], scheme: headers[':scheme'],
    headers: Object.fromEntries(Object.entries(headers)), bytes: 0, ended: false, reset: null, port: stream.session.socket.localPort }
  seen.push(what)
  let body = ''
  stream.on('error', () => {})
  stream.on('aborted', () => { what.reset = stream.rstCode })
  stream.on('trailers', trailers => { what.trailers = { ...trailers } })
  const own = answers[what.path.split('?')[0]]
  if (own) return own(stream, headers)
  stream.on('data', data => {
    what.bytes += data.length
    if (what.bytes < 4e6) body += data
  })
  stream.on('end', () => {
    if (stream.aborted || stream.destroyed) return
    what.ended = true
    what.body = body
    const document = JSON.stringify({ ...what, body: body.length < 1000 ? body : null })
    stream.respond({ ':status': 200, 'content-type': 'application/json' })
    stream.end(document)
  })
}

function listen(server, at) {
  server.on('stream', serve)
  server.on('session', session => session.on('error', () => {}))
  server.on('sessionError', () => {})
  return new Promise(done => server.listen(at, '::', done))
}

// ---- gRPC, with messages that are JSON

const json = { write: value => Buffer.from(JSON.stringify(value)), read: bytes => JSON.parse(bytes) }
const method = (name, requestStream, responseStream) => ({ path: `/test.Test/${name}`, requestStream, responseStream,
  requestSerialize: json.write, requestDeserialize: json.read, responseSerialize: json.write, responseDeserialize: json.read })
const service = { Unary: method('Unary', false, false), Gather: method('Gather', true, false), Count: method('Count', false, true),
  Talk: method('Talk', true, true), Fail: method('Fail', false, false) }
module.exports = { service: { ...service, Missing: method('Missing', false, false) } }

function note(call, name) {
  const authorization = call.metadata.get('authorization')[0]
  seen.push({ grpc: name, authorization })
  const head = new grpc.Metadata(), tail = new grpc.Metadata()
  head.set('x-head', `${authorization}`)
  tail.set('x-tail', `${authorization}`)
  call.sendMetadata(head)
  return tail
}

const calls = {
  Unary: (call, done) => {
    const tail = note(call, 'Unary')
    done(null, { got: call.request, authorization: call.metadata.get('authorization')[0] }, tail)
  },
  Fail: (call, done) => {
    const metadata = note(call, 'Fail')
    done({ code: grpc.status.FAILED_PRECONDITION, details: 'as asked', metadata })
  },
  Gather: (call, done) => {
    const tail = note(call, 'Gather')
    let sum = 0
    call.on('data', message => { sum += message.n })
    call.on('end', () => done(null, { sum }, tail))
  },
  Count: call => {
    const tail = note(call, 'Count')
    for (let n = 1; n <= call.request.to; n++) call.write({ n, pad: 'p'.repeat(call.request.pad || 0) })
    call.end(tail)
  },
  Talk: call => {
    const tail = note(call, 'Talk')
    call.on('data', message => call.write({ twice: 2 * message.n }))
    call.on('end', () => call.end(tail))
  },
}

async function main() {
  const [key, cert] = process.argv.slice(2, 4).map(name => fs.readFileSync(name))
  const [port, grpcPort, clearPort] = process.argv.slice(4).map(Number)
  await listen(http2.createSecureServer({ key, cert }), port)
  await listen(http2.createServer(), clearPort)
  const server = new grpc.Server()
  server.addService(service, calls)
  await new Promise((done, failed) => server.bindAsync(`[::]:${grpcPort}`,
    grpc.ServerCredentials.createSsl(null, [{ private_key: key, cert_chain: cert }]), error => error ? failed(error) : done()))
  readline.createInterface({ input: process.stdin }).on('line', () => {
    console.log(JSON.stringify(seen))
    seen = []
  }).on('close', () => process.exit(0))
  console.log('up')
}

if (require.main === module) main()
