// Clients of HTTP/2 and gRPC, in the box: node client.js SCENARIO [ARGUMENT]; the result is JSON on the standard output.
'use strict'
const http2 = require('http2')

const url = process.env.H2_URL
const text = what => typeof what === 'number' ? 'x'.repeat(what) : what

function ask(session, headers, body, more = {}) {
  return new Promise(done => {
    const stream = session.request(headers, { endStream: body === undefined, ...more })
    const got = { status: 0, body: '', bytes: 0, informed: [] }
    stream.on('headers', h => got.informed.push(h[':status']))
    stream.on('response', h => { got.status = h[':status']; got.headers = { ...h } })
    stream.on('trailers', h => { got.trailers = { ...h } })
    stream.on('data', data => {
      got.bytes += data.length
      if (got.bytes < 5000) got.body += data
    })
    stream.on('error', error => { got.error = error.code || String(error) })
    const late = setTimeout(() => { got.late = true; stream.close(http2.constants.NGHTTP2_CANCEL) }, 20000)
    stream.on('close', () => { clearTimeout(late); got.code = stream.rstCode; done(got) })
    if (body !== undefined && more.trailers === undefined && body !== null) stream.end(body)
    if (more.use) more.use(stream)
  })
}

function open(target = url) {
  const session = http2.connect(target)
  session.on('error', () => {})
  return session
}

const scenarios = {
  // [[headers, body]...] at once on one connection; a number is that many bytes, pieces may be too
  async many(list) {
    const session = open()
    const answers = await Promise.all(list.map(([headers, body]) => ask(session, headers, body === null ? undefined : text(body))))
    session.close()
    return answers
  },

  // a body in given pieces, each in a frame of its own, then trailers
  async pieces({ headers, pieces, trailers }) {
    const session = open()
    const answer = await ask(session, headers, null, { waitForTrailers: true, use: stream => {
      stream.on('wantTrailers', () => stream.sendTrailers(trailers || {}))
      const next = at => at < pieces.length ? stream.write(text(pieces[at]), () => setImmediate(next, at + 1)) : stream.end()
      next(0)
    } })
    session.close()
    return answer
  },

  // much to a server that reads slowly or not at all: how much was taken
  async upload({ headers, size }) {
    const session = open()
    let sent = 0
    const answer = await ask(session, headers, null, { use: stream => {
      const piece = Buffer.alloc(65536, 'u')
      const more = () => {
        while (sent < size) {
          const n = Math.min(piece.length, size - sent)
          sent += n
          if (!stream.write(piece.subarray(0, n))) return stream.once('drain', more)
        }
        stream.end()
      }
      more()
    } })
    session.close()
    return { ...answer, sent }
  },

  // one stream is given up, others of its connection go on
  async cancel() {
    const session = open()
    const [stopped, after] = await Promise.all([
      ask(session, { ':path': '/big', 'x-size': 50e6 }, undefined, { use: stream => {
        stream.once('data', () => stream.close(http2.constants.NGHTTP2_CANCEL))
      } }),
      ask(session, { ':path': '/other' }),
    ])
    const last = await ask(session, { ':path': '/last' })
    session.close()
    return { stopped, after, last }
  },

  // a reader that stops reading one stream; the other one is read to its end
  async stalled({ size }) {
    const session = open()
    let paused
    const held = ask(session, { ':path': '/big', 'x-size': size, 'x-name': 'held' }, undefined, { use: stream => {
      paused = stream
      stream.once('data', () => stream.pause())
    } })
    const other = await ask(session, { ':path': '/big', 'x-size': size })
    paused.resume()
    const first = await held
    session.close()
    return { other, first }
  },

  // what the connection does: goaway, end
  async leave({ path }) {
    const session = open()
    const events = []
    session.on('goaway', code => events.push(['goaway', code]))
    const closed = new Promise(done => session.on('close', done))
    const answer = await ask(session, { ':path': path })
    if (!session.destroyed && !session.closed) session.close()
    await closed
    return { answer, events }
  },

  async settings() {
    const session = open()
    const settings = await new Promise(done => session.on('remoteSettings', done))
    session.close()
    return settings
  },

  async grpc({ target, calls }) {
    const grpc = require('@grpc/grpc-js')
    const { service } = require('./server.js')
    const Client = grpc.makeGenericClientConstructor(service, 'Test')
    const client = new Client(target, grpc.credentials.createSsl())
    const deadline = () => ({ deadline: Date.now() + 20000 })
    const result = {}
    const finish = (call, name, done) => {
      const got = result[name] = { messages: [] }
      call.on('metadata', m => { got.head = m.getMap() })
      call.on('status', s => { Object.assign(got, { code: s.code, details: s.details, tail: s.metadata.getMap() }); done() })
      call.on('error', () => {})
      call.on('data', message => got.messages.push(message))
      return got
    }
    const run = {
      unary: done => {
        const call = client.Unary({ hello: 'you' }, new grpc.Metadata(), deadline(), (error, value) => got.messages.push(value))
        const got = finish(call, 'unary', done)
      },
      fail: done => finish(client.Fail({}, new grpc.Metadata(), deadline(), () => {}), 'fail', done),
      missing: done => finish(client.Missing({}, new grpc.Metadata(), deadline(), () => {}), 'missing', done),
      gather: done => {
        const call = client.Gather(new grpc.Metadata(), deadline(), (error, value) => got.messages.push(value))
        const got = finish(call, 'gather', done)
        for (let n = 1; n <= 100; n++) call.write({ n, pad: 'p'.repeat(1000) })
        call.end()
      },
      count: done => finish(client.Count({ to: 200, pad: 2000 }, new grpc.Metadata(), deadline()), 'count', done),
      talk: done => { // each message waits for the answer to the one before
        const call = client.Talk(new grpc.Metadata(), deadline())
        finish(call, 'talk', done)
        let n = 1
        call.write({ n })
        call.on('data', () => ++n <= 20 ? call.write({ n }) : call.end())
      },
    }
    await Promise.all(calls.map(name => new Promise(done => run[name](done))))
    for (const got of Object.values(result)) if (got.messages.length > 50) got.messages = got.messages.map(m => m.n)
    client.close()
    return result
  },
}

scenarios[process.argv[2]](JSON.parse(process.argv[3] || 'null')).then(result => {
  console.log(JSON.stringify(result))
  process.exit(0)
}, error => {
  console.error(error)
  process.exit(1)
})
