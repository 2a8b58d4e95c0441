// node driver.js URI: holds locks with redlock as it is told, in the lines of Driver.java:
//
//   NUMBER WORKER OPERATION plain_lock NAME ARGUMENT...
//
// Operations: `acquire WAIT_MS LEASE_MS`, `extend LEASE_MS`, `release`. The process ends with its input.
'use strict';

const readline = require('readline');
const Redis = require('ioredis');
const Redlock = require('redlock');

const retryDelay = 100;

// The locks of one worker, which makes its calls one after the other.
class Worker {
  constructor(redlock) {
    this.redlock = redlock;
    this.held = new Map();
    this.last = Promise.resolve();
  }

  execute(number, ...call) {
    this.last = this.last
      .then(() => this.make(...call))
      .then((value) => `ok ${value}`, (problem) => `failed ${problem.message.replace(/\s+/g, ' ')}`)
      .then((result) => console.log(`${number} ${process.hrtime.bigint()} ${result}`));
  }

  async make(operation, name, times) {
    switch (operation) {
      case 'acquire':
        return this.acquire(name, ...times);
      case 'extend':
        this.held.set(name, await this.held.get(name).extend(times[0]));
        return true;
      case 'release':
        await this.held.get(name).unlock();
        return 'released';
      default:
        throw new Error(`no such operation: ${operation}`);
    }
  }

  async acquire(name, wait, lease) {
    const options = { retryCount: Math.ceil(wait / retryDelay), retryDelay };
    try {
      this.held.set(name, await this.redlock.lockWithOptions(name, lease, options));
      return true;
    } catch (problem) {
      if (problem instanceof Redlock.LockError) return false;
      throw problem;
    }
  }
}

async function main() {
  const client = new Redis(process.argv[2]);
  await client.ping();
  const redlock = new Redlock([client], { retryCount: 0, retryJitter: 20 });
  console.log(`ready redlock-${require('redlock/package.json').version}`);
  const workers = new Map();
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [number, worker, operation, , name, ...times] = line.split(' ');
    if (!workers.has(worker)) workers.set(worker, new Worker(redlock));
    workers.get(worker).execute(number, operation, decodeURIComponent(name), times.map(Number));
  }
  process.exit(0);
}

main();
