// KafkaJS against a broker: create a topic, produce, read back by offset and by time.
// usage: node round_trip.js ADDRESS TOPIC CODEC RECORDS_JSON; prints what was read as JSON.

const { Kafka, CompressionTypes, CompressionCodecs, logLevel } = require('kafkajs')
const Cluster = require('kafkajs/src/cluster')
const socketFactory = require('kafkajs/src/network/socketFactory')
const SnappyJS = require('snappyjs')
const lz4 = require('lz4-napi')

// Kafka frames snappy as xerial's blocks: a header, then blocks behind their lengths.
const XERIAL = Buffer.from([130, 83, 78, 65, 80, 80, 89, 0, 0, 0, 0, 1, 0, 0, 0, 1])
CompressionCodecs[CompressionTypes.Snappy] = () => ({
  async compress(encoder) {
    const block = SnappyJS.compress(encoder.buffer)
    const size = Buffer.alloc(4)
    size.writeUInt32BE(block.length)
    return Buffer.concat([XERIAL, size, block])
  },
  async decompress(buffer) {
    if (buffer.compare(XERIAL, 0, 8, 0, 8) !== 0) return SnappyJS.uncompress(buffer)
    const blocks = []
    for (let at = 16; at < buffer.length; ) {
      const size = buffer.readUInt32BE(at)
      blocks.push(SnappyJS.uncompress(buffer.subarray(at + 4, at + 4 + size)))
      at += 4 + size
    }
    return Buffer.concat(blocks)
  },
})
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: (encoder) => lz4.compressFrame(encoder.buffer),
  decompress: (buffer) => lz4.decompressFrame(buffer),
})
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async (encoder) => Buffer.from((await zstd()).compress(encoder.buffer)),
  decompress: async (buffer) => Buffer.from((await zstd()).decompress(buffer)),
})
function zstd() {
  const { ZstdCodec } = require('zstd-codec')
  return new Promise((resolve) => ZstdCodec.run((codec) => resolve(new codec.Simple())))
}

const TYPES = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
}

async function main() {
  const [address, topic, codec, json] = process.argv.slice(2)
  const sent = JSON.parse(json)
  const kafka = new Kafka({ clientId: 'compat', brokers: [address], logLevel: logLevel.ERROR })

  const admin = kafka.admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic, numPartitions: 1 }], waitForLeaders: true })

  const producer = kafka.producer({ allowAutoTopicCreation: false })
  await producer.connect()
  const messages = sent.map((r) => ({
    key: r.key,
    value: r.value,
    partition: 0,
    timestamp: String(r.timestamp_ms),
    headers: { origin: 'compat' },
  }))
  await producer.send({ topic, messages, compression: TYPES[codec], acks: -1 })
  await producer.disconnect()

  const ends = await admin.fetchTopicOffsets(topic)
  const timed = await admin.fetchTopicOffsetsByTimestamp(topic, sent[30].timestamp_ms - 500)
  const read = await fetchAll(kafka, topic, 0, sent.length)
  const tail = await fetchAll(kafka, topic, 25, sent.length - 25)
  await admin.disconnect()
  console.log(JSON.stringify({ end: ends[0].high, timed: timed[0].offset, read, tail }))
}

// KafkaJS's consumer always joins a group, which is not what is tested here: its cluster object
// uses the same protocol code and decoders and needs no coordinator.
async function fetchAll(kafka, topic, from, count) {
  const cluster = new Cluster({
    brokers: [process.argv[2]],
    clientId: 'compat',
    logger: kafka.logger(),
    socketFactory: socketFactory(),
    connectionTimeout: 5000,
    requestTimeout: 10000,
    enforceRequestTimeout: true,
    maxInFlightRequests: null,
    metadataMaxAge: 300000,
  })
  await cluster.connect()
  await cluster.addTargetTopic(topic)
  const { leader } = cluster.findTopicPartitionMetadata(topic)[0]
  const broker = await cluster.findBroker({ nodeId: String(leader) })
  const found = []
  for (let offset = from; found.length < count; ) {
    const partitions = [{ partition: 0, fetchOffset: String(offset), maxBytes: 1048576 }]
    const bounds = { isolationLevel: 0, maxWaitTime: 1000, minBytes: 1, maxBytes: 10485760 }
    const { responses } = await broker.fetch({ ...bounds, topics: [{ topic, partitions }] })
    for (const message of responses[0].partitions[0].messages) {
      if (Number(message.offset) < offset) continue
      found.push(plain(message))
      offset = Number(message.offset) + 1
    }
  }
  await cluster.disconnect()
  return found
}

function plain(message) {
  return {
    offset: Number(message.offset),
    key: message.key.toString(),
    value: message.value.toString(),
    timestamp_ms: Number(message.timestamp),
    origin: message.headers.origin.toString(),
  }
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error)
    process.exit(1)
  },
)
