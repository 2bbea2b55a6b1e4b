// One client of agentbox's service over each protocol, all with the same calls. Arguments: the protocol, the URL,
// the key ("" for none), the .proto file, its descriptor set. On stdin a list of [method, request], on stdout a line
// with the results; a stream's result is the list of its messages.
'use strict'
const fs = require('node:fs')

const [, , protocol, url, key, proto, set] = process.argv

async function overGrpc() {
  const grpc = require('@grpc/grpc-js')
  const loaded = require('@grpc/proto-loader').loadSync(proto, { keepCase: true, defaults: true, oneofs: true })
  const { SandboxService } = grpc.loadPackageDefinition(loaded).sandbox.v1
  const client = new SandboxService(new URL(url).host, grpc.credentials.createInsecure(),
    { 'grpc.max_receive_message_length': -1 })
  const metadata = new grpc.Metadata()
  if (key) metadata.set('authorization', `Bearer ${key}`)
  return (method, request) => new Promise((resolve) => {
    const failed = (e) => resolve({ failed: e.code, message: e.details })
    if (!method.endsWith('Stream')) {
      client[method](request, metadata, (e, reply) => (e ? failed(e) : resolve(reply)))
      return
    }
    const got = []
    client[method](request, metadata).on('data', (m) => got.push({ ...m, at: Date.now() })).on('end', () => resolve(got))
      .on('error', failed)
  })
}

async function overWeb(name) {
  const { createClient, ConnectError } = require('@connectrpc/connect')
  const web = require('@connectrpc/connect-web')
  const { createFileRegistry, fromBinary, toJson } = require('@bufbuild/protobuf')
  const { FileDescriptorSetSchema } = require('@bufbuild/protobuf/wkt')
  const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, fs.readFileSync(set)))
  const service = registry.getService('sandbox.v1.SandboxService')
  const make = name === 'grpc-web' ? web.createGrpcWebTransport : web.createConnectTransport
  const client = createClient(service, make({ baseUrl: url, useBinaryFormat: name !== 'connect' }))
  const headers = key ? { authorization: `Bearer ${key}` } : {}
  const plain = (method, m) => toJson(service.method[method].output, m, { useProtoFieldName: true, alwaysEmitImplicit: true })
  return async (name_, request) => {
    const method = name_[0].toLowerCase() + name_.slice(1)
    const camel = Object.fromEntries(Object.entries(request).map(([k, v]) => [k.replace(/_(.)/g, (_, c) => c.toUpperCase()), v]))
    try {
      if (!name_.endsWith('Stream')) return plain(method, await client[method](camel, { headers }))
      const got = []
      for await (const m of client[method](camel, { headers })) got.push({ ...plain(method, m), at: Date.now() })
      return got
    } catch (e) {
      const known = ConnectError.from(e)
      return { failed: known.code, message: known.rawMessage }
    }
  }
}

async function main() {
  const call = protocol === 'grpc' ? await overGrpc() : await overWeb(protocol)
  const results = []
  for (const [method, request] of JSON.parse(fs.readFileSync(0, 'utf8'))) results.push(await call(method, request))
  process.stdout.write(JSON.stringify(results) + '\n', () => process.exit(0))
}

main().catch((e) => { console.error(e); process.exit(1) })
