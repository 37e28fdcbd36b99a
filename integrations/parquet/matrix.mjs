// The part of matrix.py that runs in Node.js: hyparquet, hyparquet-writer and @dsnp/parquetjs.
//
//     node matrix.mjs PACKAGES read < JOBS      counts the rows of a value
//     node matrix.mjs PACKAGES write FOLDER     files by the two writers
//
// PACKAGES is a folder with node_modules. Jobs and results are lines of JSON.

import fs from 'node:fs'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const [packages, task, folder] = process.argv.slice(2)
const require = createRequire(pathToFileURL(packages + '/package.json'))
const load = name => import(pathToFileURL(packages + '/node_modules/' + name + '/src/node.js'))
const ROWS = 10000

async function count({ path, value: [kind, text] }) {
  const { asyncBufferFromFile, parquetQuery } = await load('hyparquet')
  const of = { number: Number, bigint: BigInt, text: String, bool: text => text === 'true', date: text => new Date(text) }
  of.bytes = hex => new Uint8Array(Buffer.from(hex, 'hex'))
  const filter = { x: { $eq: of[kind](text) } }
  const file = await asyncBufferFromFile(path)
  const utf8 = kind !== 'bytes'
  return (await parquetQuery({ file, filter, useBloomFilters: true, utf8 })).length
}

async function write() {
  const { parquetWriteFile } = await load('hyparquet-writer')
  const numbers = Array.from({ length: ROWS }, (_, i) => i)
  const columns = {
    boolean: ['BOOLEAN', i => i % 2 === 0], int32: ['INT32', i => i], int64: ['INT64', BigInt], float32: ['FLOAT', i => i / 8], float64: ['DOUBLE', i => i / 7],
    string: ['STRING', i => 'key ' + i], binary: ['BYTE_ARRAY', i => new TextEncoder().encode('key ' + i)], 'timestamp ms': ['TIMESTAMP', i => new Date(1000 * i)],
    uuid: ['UUID', i => '00000000-0000-0000-0000-' + String(i).padStart(12, '0')], float16: ['FLOAT16', i => i % 2000],
  }
  for (const [name, [type, value]] of Object.entries(columns)) {
    const columnData = [{ name: 'x', type, data: numbers.map(value), bloomFilter: true }]
    try {
      parquetWriteFile({ filename: `${folder}/hyparquet-writer ${name}.parquet`, columnData, rowGroupSize: ROWS })
    } catch (error) {
      console.log(JSON.stringify({ name, error: String(error) }))
    }
  }
  const { ParquetSchema, ParquetWriter } = require('@dsnp/parquetjs')
  for (const [file, options] of [['parquetjs', { bloomFilters: [{ column: 'x' }] }], ['parquetjs none', {}]]) {
    const writer = await ParquetWriter.openFile(new ParquetSchema({ x: { type: 'UTF8' } }), `${folder}/${file}.parquet`, options)
    for (let i = 0; i < 1000; i++) await writer.appendRow({ x: 'key ' + i })
    await writer.close()
  }
}

if (task === 'write') {
  await write()
} else {
  for (const line of fs.readFileSync(0, 'utf8').split('\n').filter(Boolean)) {
    const result = await count(JSON.parse(line)).then(rows => ({ rows }), error => ({ error: String(error) }))
    console.log(JSON.stringify(result))
  }
}
