// node bench.js URI: the work of scripts/bench peers, with redlock. Prints one line of JSON.
'use strict';

const Redis = require('ioredis');
const Redlock = require('redlock');

const lease = 30000;
const micros = () => Number(process.hrtime.bigint()) * 1e-3;

async function pair(redlock) {
  const times = [];
  for (let i = 0; i < 20000; ++i) {
    const began = micros();
    await (await redlock.lock('bench:peer:pair', lease)).unlock();
    times.push(micros() - began);
  }
  return times.sort((a, b) => a - b)[times.length / 2];
}

async function callers(redlock, count, locks, seconds) {
  const counts = Array(count).fill(0);
  const end = Date.now() + seconds * 1000;
  await Promise.all(counts.map(async (_, me) => {
    while (Date.now() < end) {
      const held = await redlock.lock(`bench:peer:${locks}:${me % locks}`, lease);
      if (Date.now() < end) ++counts[me];
      await held.unlock();
    }
  }));
  const sum = counts.reduce((a, b) => a + b, 0);
  const squares = counts.reduce((a, b) => a + b * b, 0);
  return [sum / seconds, sum * sum / (count * squares)];
}

async function main() {
  const client = new Redis(process.argv[2]);
  // Waits as long as it takes, with the pauses that redlock chooses.
  const redlock = new Redlock([client], { retryCount: -1 });
  const p = await pair(redlock);
  await callers(redlock, 1000, 1000, 1);
  const [crowd] = await callers(redlock, 1000, 1000, 5);
  const [one, jain] = await callers(redlock, 8, 1, 5);
  console.log(JSON.stringify({
    name: `redlock ${require('redlock/package.json').version}`,
    crowd_of: '1,000 promises',
    work: { pair: p, crowd, one_lock: one, one_lock_jain: jain },
  }));
  process.exit(0);
}

main();
