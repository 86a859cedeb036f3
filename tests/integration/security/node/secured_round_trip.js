// KafkaJS at secured listeners. usage: node secured_round_trip.js TOPIC WAYS_JSON; each way has
// `brokers`, and `ssl` (paths of files) or `sasl` or both. Writes a record each way, reads it back.

const fs = require('fs')
const { Kafka, logLevel } = require('kafkajs')

async function roundTrip(topic, way, value) {
  const ssl = way.ssl && {
    ca: [fs.readFileSync(way.ssl.ca, 'utf-8')],
    cert: way.ssl.cert && fs.readFileSync(way.ssl.cert, 'utf-8'),
    key: way.ssl.key && fs.readFileSync(way.ssl.key, 'utf-8'),
  }
  const sasl = way.sasl && { ...way.sasl }
  if (sasl && sasl.token) sasl.oauthBearerProvider = async () => ({ value: sasl.token })
  const kafka = new Kafka({ brokers: way.brokers, ssl, sasl, logLevel: logLevel.NOTHING })
  const producer = kafka.producer()
  await producer.connect()
  await producer.send({ topic, messages: [{ value }] })
  await producer.disconnect()
  const consumer = kafka.consumer({ groupId: `js-${value}` })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await new Promise((resolve) => {
    consumer.run({
      eachMessage: async ({ message }) => {
        if (message.value.toString() === value) resolve()
      },
    })
  })
  await consumer.disconnect()
}

async function main() {
  const [topic, ways] = [process.argv[2], JSON.parse(process.argv[3])]
  for (const [number, way] of ways.entries()) {
    await roundTrip(topic, way, `value ${number}`)
    console.log(`value ${number}`)
  }
}

main().catch((error) => {
  console.error(error)
  process.exit(1)
})
