#!/usr/bin/env node
// SQL on a trace by Perfetto's own trace processor, without a browser.
//
//   node tp_query.cjs ENGINE_DIR TRACE < queries.json
//
// ENGINE_DIR holds a built Perfetto UI (engine_bundle.js, trace_processor.wasm).
// queries.json is a list of SQL texts; the answer is one JSON object:
//   {"errors": [...while loading], "results": [{"columns", "rows", "error"}, ...]}
//
// The bundle is made to run as a web worker: it gets a message port, and over
// that port speaks the protocol of protos/perfetto/trace_processor/
// trace_processor.proto: a stream of length-prefixed TraceProcessorRpc messages.
'use strict';

const fs = require('fs');
const path = require('path');

// Field numbers of TraceProcessorRpc and what is inside it.
const RPC = {seq: 1, request: 2, fatalError: 5, appendData: 101, queryArgs: 103,
             appendResult: 201, queryResult: 203, finalizeResult: 212};
const METHOD = {appendTraceData: 1, finalizeTraceData: 2, query: 3};
const RESULT = {columnNames: 1, error: 2, batch: 3};
const BATCH = {cells: 1, varints: 2, doubles: 3, blobs: 4, strings: 5, isLast: 6};
const CELL = {null: 1, varint: 2, double: 3, string: 4, blob: 5};
const CHUNK_BYTES = 8 * 1024 * 1024;

// --- Wire format -----------------------------------------------------------

function encodeVarint(value) {
  const bytes = [];
  let rest = BigInt(value);
  while (rest > 127n) {
    bytes.push(Number(rest & 127n) | 128);
    rest >>= 7n;
  }
  bytes.push(Number(rest));
  return Buffer.from(bytes);
}

function encodeNumber(field, value) {
  return Buffer.concat([encodeVarint(field * 8), encodeVarint(value)]);
}

function encodeBytes(field, bytes) {
  return Buffer.concat([encodeVarint(field * 8 + 2), encodeVarint(bytes.length), bytes]);
}

class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }
  done() {
    return this.at >= this.bytes.length;
  }
  varint() {
    let value = 0n;
    for (let shift = 0n;; shift += 7n) {
      const byte = this.bytes[this.at++];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return BigInt.asIntN(64, value);
    }
  }
  // The next [field, value]; numbers as BigInt, everything else as Buffer.
  field() {
    const key = Number(this.varint());
    const field = key >> 3;
    switch (key & 7) {
      case 0:
        return [field, this.varint()];
      case 1:
        return [field, this.take(8)];
      case 2:
        return [field, this.take(Number(this.varint()))];
      case 5:
        return [field, this.take(4)];
      default:
        throw new Error(`wire type ${key & 7} in a reply`);
    }
  }
  take(length) {
    this.at += length;
    return this.bytes.subarray(this.at - length, this.at);
  }
}

function* fieldsOf(bytes) {
  for (const reader = new Reader(bytes); !reader.done();) yield reader.field();
}

// A repeated number, packed or not.
function numbersOf(value) {
  if (typeof value === 'bigint') return [value];
  const numbers = [];
  for (const reader = new Reader(value); !reader.done();) numbers.push(reader.varint());
  return numbers;
}

// --- The engine ------------------------------------------------------------

// Loads the bundle into a look-alike of a worker's global scope and returns
// the port that it listens on.
async function startEngine(dir, onBytes) {
  class FileRequest {
    open(method, url) {
      this.url = url;
    }
    send() {
      const file = fs.readFileSync(path.join(dir, path.basename(this.url)));
      this.response = file.buffer.slice(file.byteOffset, file.byteOffset + file.length);
    }
  }
  const scope = {location: {href: 'http://localhost/engine_bundle.js'}, onmessage: null};
  const silent = {log() {}, warn() {}, error: console.error};
  const names = ['self', 'location', 'process', 'window', 'WorkerGlobalScope', 'XMLHttpRequest',
                 'console'];
  const bundle = fs.readFileSync(path.join(dir, 'engine_bundle.js'), 'utf8');
  // Without `process` the bundle does not take this for Node.
  new Function(...names, bundle)(scope, scope.location, undefined, undefined, function() {},
                                 FileRequest, silent);
  // The handler is installed by a promise of the bundle.
  while (scope.onmessage === null) await new Promise((resolve) => setTimeout(resolve, 1));
  await new Promise((resolve) => setTimeout(resolve, 20));
  const port = {
    onmessage: null,
    postMessage(data) {
      const copy = Buffer.from(data);  // the engine reuses its memory
      setImmediate(() => onBytes(copy));
    },
  };
  scope.onmessage({data: port});
  return port;
}

class TraceProcessor {
  static async start(dir) {
    const processor = new TraceProcessor();
    processor.port = await startEngine(dir, (bytes) => processor.receive(bytes));
    return processor;
  }

  constructor() {
    this.sent = 0;
    this.pending = Buffer.alloc(0);
    this.replies = [];
    this.wake = null;
  }

  // Cuts the byte stream into messages: every one is field 1 of a stream.
  receive(bytes) {
    this.pending = Buffer.concat([this.pending, bytes]);
    while (this.pending.length >= 2) {
      let size = 0;
      let at = 1;
      for (let scale = 1;; scale *= 128) {
        if (at >= this.pending.length) return;
        const byte = this.pending[at++];
        size += (byte & 127) * scale;
        if (byte < 128) break;
      }
      if (this.pending.length < at + size) return;
      this.replies.push(this.pending.subarray(at, at + size));
      this.pending = this.pending.subarray(at + size);
      if (this.wake) this.wake();
    }
  }

  async reply() {
    while (this.replies.length === 0) {
      await new Promise((resolve) => {
        this.wake = resolve;
      });
    }
    this.wake = null;
    return this.replies.shift();
  }

  send(method, argument) {
    const parts = [encodeNumber(RPC.seq, this.sent++), encodeNumber(RPC.request, method)];
    if (argument) parts.push(argument);
    this.port.onmessage({data: new Uint8Array(encodeBytes(1, Buffer.concat(parts)))});
  }

  // Error texts of one reply to append or finalize.
  static errorsOf(reply) {
    const errors = [];
    for (const [field, value] of fieldsOf(reply)) {
      if (field === RPC.fatalError) errors.push(value.toString());
      if (field !== RPC.appendResult && field !== RPC.finalizeResult) continue;
      for (const [, inner] of fieldsOf(value)) {
        if (typeof inner !== 'bigint' && inner.length > 0) errors.push(inner.toString());
      }
    }
    return errors;
  }

  async load(trace) {
    const errors = [];
    for (let at = 0; at < trace.length; at += CHUNK_BYTES) {
      this.send(METHOD.appendTraceData,
                encodeBytes(RPC.appendData, trace.subarray(at, at + CHUNK_BYTES)));
      errors.push(...TraceProcessor.errorsOf(await this.reply()));
    }
    this.send(METHOD.finalizeTraceData);
    errors.push(...TraceProcessor.errorsOf(await this.reply()));
    return errors;
  }

  async query(sql) {
    this.send(METHOD.query, encodeBytes(RPC.queryArgs, encodeBytes(1, Buffer.from(sql))));
    const result = {columns: [], rows: [], error: null};
    const cells = [];
    for (let last = false; !last;) {
      for (const [field, value] of fieldsOf(await this.reply())) {
        if (field === RPC.fatalError) result.error = value.toString();
        if (field !== RPC.queryResult) continue;
        for (const [part, inner] of fieldsOf(value)) {
          if (part === RESULT.columnNames) result.columns.push(inner.toString());
          if (part === RESULT.error && inner.length > 0) result.error = inner.toString();
          if (part === RESULT.batch) last = readBatch(inner, cells) || last;
        }
      }
      if (result.error !== null) last = true;
    }
    const width = result.columns.length;
    for (let i = 0; width > 0 && i < cells.length; i += width) {
      result.rows.push(cells.slice(i, i + width));
    }
    return result;
  }
}

// Appends the cells of a batch, row by row. True if it was the last one.
function readBatch(batch, cells) {
  const kinds = [];
  const varints = [];
  const doubles = [];
  let strings = [];
  let last = false;
  for (const [field, value] of fieldsOf(batch)) {
    if (field === BATCH.cells) kinds.push(...numbersOf(value));
    if (field === BATCH.varints) varints.push(...numbersOf(value));
    if (field === BATCH.doubles) {
      for (let at = 0; at < value.length; at += 8) doubles.push(value.readDoubleLE(at));
    }
    if (field === BATCH.strings) strings = value.toString().split('\0');
    if (field === BATCH.isLast) last = value !== 0n;
  }
  let nextVarint = 0;
  let nextDouble = 0;
  let nextString = 0;
  for (const kind of kinds) {
    switch (Number(kind)) {
      case CELL.varint: {
        const value = varints[nextVarint++];
        const exact = Number.isSafeInteger(Number(value));
        cells.push(exact ? Number(value) : value.toString());
        break;
      }
      case CELL.double:
        cells.push(doubles[nextDouble++]);
        break;
      case CELL.string:
        cells.push(strings[nextString++]);
        break;
      default:
        cells.push(null);
    }
  }
  return last;
}

async function main() {
  const [dir, trace] = process.argv.slice(2);
  if (!dir || !trace) {
    console.error('usage: tp_query.cjs ENGINE_DIR TRACE < queries.json');
    process.exit(2);
  }
  const queries = JSON.parse(fs.readFileSync(0, 'utf8'));
  const processor = await TraceProcessor.start(dir);
  const answer = {errors: await processor.load(fs.readFileSync(trace)), results: []};
  for (const sql of queries) answer.results.push(await processor.query(sql));
  // The engine's timers would keep us.
  process.stdout.write(JSON.stringify(answer) + '\n', () => process.exit(0));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
