// Compiled, not run: what the types must allow, and what they must not.

import { MemoryStore, PostgresStore, RedbStore, RedisStore } from 'zonda';
import { App, decodeMessage, makeQuery } from 'zonda';
import type { Answer, Handler, Message, Middleware, Query, Reply, ResourceRecord } from 'zonda';
import type { RecordError } from 'zonda';
import type { OwnStore as OwnRecords, RecordSet, StoredRecordSet } from 'zonda';
import { Store as CoreStore } from 'zonda';
import { DefaultServer, DefaultStore, DinoDNS, DNSOverUDP, RCode, Store } from 'zonda/dinodns';
import type { DNSRequest, DNSResponse, NextFunction } from 'zonda/dinodns/types';
import { DefaultCache } from 'zonda/dinodns/plugins/cache';
import { DNSOverHTTP, TCPSerializer, UDPSerializer } from 'zonda/dinodns/common/network';
import { DNSPacketSerializer } from 'zonda/dinodns/common';
import type { DNSServer, Packet, Serializer } from 'zonda/dinodns/common';
import { storage } from 'zonda/dinodns/plugins';
import type { SupportedRecordType, ZoneData } from 'zonda/dinodns/types';
import { Trie } from 'zonda/dinodns/common/core/trie';

const app = new App({
  listen: ['127.0.0.1:5300'],
  workers: 1,
  onError: (error, req) => console.error(req.name, error),
});
const timing: Middleware = async (req, res, next) => {
  const start = performance.now();
  await next();
  res.state.ms = performance.now() - start;
};
const hello: Handler = (req: Query, res: Reply) =>
  res.answer({ type: 'TXT', ttl: 300, data: 'Hello' });
app
  .middleware(timing)
  .handle('example.com', hello)
  .handle(':user.example.com/A|AAAA', async (req, res) => {
    const name: string = req.captures.user;
    res.answer({ type: 'MX', data: { preference: 10, exchange: `${name}.example.org` } });
    res.answer([
      { type: 'A', data: '192.0.2.1' },
      { type: 'TYPE65280', data: Buffer.of(1) },
    ]);
    res.extendedError('Blocked', 'on the list').nxdomain();
    res.rcode = 'REFUSED';
    const prefix: number | undefined = req.clientSubnet?.prefix;
    res.answers = res.answers.filter((record: ResourceRecord) => record.ttl !== prefix);
    res.answers.push({ type: 'A', data: '192.0.2.1' });
    // @ts-expect-error: the pattern captures no such label
    console.log(req.captures.usr);
  })
  .handle('*.:a.:b-c.example/TXT', (req, res, next) => {
    const words: Record<'a' | 'b-c', string> = req.captures;
    return words.a === 'x' ? { type: 'TXT', data: [words['b-c']] } : next();
  })
  .handle('example.net', (req) => {
    // @ts-expect-error: the pattern captures nothing
    return [{ type: 'TXT', data: req.captures.any }];
  })
  .handle(String('computed'), (req) => [{ type: 'TXT', data: req.captures.any }]);
app
  .route('eu.example')
  .handle(':user', (req, res) => res.nxdomain({ ttl: req.captures.user.length }))
  .use('www', (req, res, next) => next());
// What a suffix captures is known below it, however deep, and so is what a pattern of middleware does.
app
  .route(':user.example')
  .handle(':host/TXT', ({ captures, params }) => [
    { type: 'TXT', data: [captures.host, captures.user, params.user] },
  ])
  .handle(['@', 'www'], (req, res) => res.answer({ type: 'TXT', data: req.captures.user }))
  .middleware(async (req, res, next) => (res.tag('user', req.captures.user), await next()))
  .use(':host', (req, res, next) => (res.tag(req.captures.host, req.params.user.length), next()))
  // @ts-expect-error: neither the pattern nor the suffix captures such a label
  .handle(':host', (req) => ({ type: 'TXT', data: req.captures.usr }));
const deep = app.route(':user.example').route(':device');
deep.handle('@', ({ captures: { user, device } }) => ({ type: 'TXT', data: [user, device] }));
deep.route('@').onError((error, req, res) => res?.servfail(error.message));
const computed: string = String('computed');
app.route(computed).handle(':a', ({ captures }) => ({ type: 'TXT', data: captures.any + captures.a }));
app.middleware(':user.example', (req, res, next) => (req.captures.user === '' ? undefined : next()));
// @ts-expect-error: the pattern captures no such label
app.use(':user.example', (req, res, next) => (req.captures.usr === '' ? undefined : next()));
app.handle([':a.example', ':a.:b.example'], ({ captures }) => ({ type: 'TXT', data: captures.a }));
// @ts-expect-error: not all of the patterns capture such a label
app.handle([':a.example', ':a.:b.example'], ({ captures }) => ({ type: 'TXT', data: captures.b }));
app.listen(5300).listen('[::1]:53').listen({ host: '::', port: 53, tcp: false });
// @ts-expect-error: a port is needed
app.listen({ host: '::' });
new App({ listen: [5300, { port: 5301 }], reusePort: true });
// @ts-expect-error: a misspelt type
app.query('a.example', 'AAAAA');
// @ts-expect-error: a misspelt type
app.handle('a.example', (req, res) => res.answer({ type: 'AAAAA', data: '' }));
// @ts-expect-error: a misspelt type
new MemoryStore().set({ owner: 'a.example', type: 'AAAAA', data: [] });
// @ts-expect-error: a misspelt type
new MemoryStore().remove('a.example', 'AAAAA');
// @ts-expect-error: a misspelt response code
app.handle('a.example', (req, res) => res.reply('NXDOMIAN'));
// @ts-expect-error: a misspelt response code
app.handle('a.example', (req, res) => void (res.rcode = 'NXDOMIAN'));
// @ts-expect-error: a misspelt extended error
app.handle('a.example', (req, res) => res.extendedError('Bloked'));
app.handle('a.example', (req, res) => res.reply('RCODE11').reply(11).extendedError(65_000));
app.handle('a.example', (req, res) => res.reply('NXDOMAIN').extendedError('StaleAnswer'));
void app.query('a.example', 'TYPE65280', { dnssecOk: true, client: '192.0.2.1' });
void app.query('a.example', 65280).then(({ rcode }) => rcode === 'REFUSED');
// @ts-expect-error: there is no such option
void app.query('a.example', 'A', { clint: '192.0.2.1' });
app.onError((error, req, res) => {
  const { section, index, pattern } = error as RecordError;
  console.log(section === 'answers', index + 1, pattern?.length, error instanceof Error);
  return res?.refused();
});
app.middleware('*.example', timing).on('listening', ([address]) => console.log(address.length));
app.once('error', (error, query) => console.log(error.message, query.pattern?.length));
// @ts-expect-error: an SOA record has an owner
app.handle('example.net', (req, res) => res.noData({ soa: { data: '' } }));
// @ts-expect-error: a number is no answer
app.handle('example.net', () => 7);
// @ts-expect-error: an exchange is missing
app.handle('example.net', () => ({ type: 'MX', data: { preference: 7 } }));
// @ts-expect-error: a text is no answer
app.handle('example.net', () => '192.0.2.1');
// @ts-expect-error: no record has such a field
app.handle('example.net', (): ResourceRecord => ({ type: 'A', data: '192.0.2.1', tll: 5 }));
const records: ResourceRecord[] = [{ type: 'A', data: '192.0.2.1' }];
app
  .handle('example.net', (req) => req.type === 'A' && { type: 'A', data: '192.0.2.1' })
  .handle('example.net', () => new Set(records))
  .handle('example.net', async () => [...new Set(records).values()])
  // @ts-expect-error: an iterator is no collection
  .handle('example.net', () => records.values())
  // @ts-expect-error: a text is no record
  .handle('example.net', () => new Set(['192.0.2.1']))
  .onError((error) => console.error(error))
  .onError((error) => records.push({ type: 'TXT', data: error.message }))
  .onError(async (error, req, res) => error instanceof TypeError && res?.refused())
  // @ts-expect-error: a text is no answer
  .onError((error) => error.message);

function read(answer: Answer, reply: Message): void {
  const { name, ttl }: { name: string; ttl: number } = answer;
  if (answer.type === 'A') {
    const address: string = answer.data;
    // @ts-expect-error: an address has no fields
    console.log(address, answer.data.preference);
  } else if (answer.type === 'MX') {
    const preference: number = answer.data.preference;
    console.log(preference, answer.data.exchange.length);
    // @ts-expect-error: what is read cannot be changed
    answer.data.preference = 7;
  } else if (answer.type === 'TXT') {
    const strings: readonly string[] = answer.data;
    console.log(strings.join(''));
  } else if (answer.type === 'TYPE65280') {
    const text: string = answer.data;
    console.log(text);
  }
  const serial: number = reply.of('SOA')[0].data.serial;
  app.handle('again.example', (req, res) => res.answer(answer, reply.answers));
  console.log(name, ttl, serial, reply.of('NSEC')[0].data.types.length);
}

app.zone('example.org', { file: 'example.org.zone' }).forward('192.0.2.53');

class Leases implements OwnRecords {
  deadline = 1000;
  async load(zone: string): Promise<RecordSet[]> {
    return [{ owner: zone, type: 'MX', data: [{ preference: 1, exchange: 'mx.example' }] }];
  }
  get = (owner: string) => [{ owner, type: 'A', ttl: 60, data: ['192.0.2.1'] }];
  watch(zone: string, changed: (owner?: string) => void) {
    changed();
    changed(`www.${zone}`);
  }
}
app.store('own.example', new Leases()).store('few.example', { load: () => [] });
app.store('redis.example', new RedisStore('redis://127.0.0.1', { prefix: 'a', compareEvery: 9 }));
app.store('postgres.example', new PostgresStore('host=127.0.0.1', { compareEvery: 9 }));

async function stores(): Promise<void> {
  const store: RedbStore = await RedbStore.open(new URL('file:///records.redb'));
  app.store('redb.example', store).store('memory.example', new MemoryStore());
  await store.set({ owner: 'a.example', type: 'TXT', data: ['"a"', ['b', Buffer.of(1)]] });
  const [first]: StoredRecordSet[] = await store.get('a.example');
  const was: boolean = await store.remove(first.owner, first.type);
  await new MemoryStore().set(first);
  await app.setZoneText('text.example', '@ 60 SOA ns h 1 2 3 4 5\n@ 60 NS ns.example.net.\n');
  const removed: boolean = await app.removeZoneText('text.example');
  console.log(was || removed, (await store.load('example')).length);
  await store.close();
  const any: CoreStore | OwnRecords = was ? store : new Leases();
  app.store('any.example', any);
  if (any instanceof CoreStore) await any.remove('a.example', 'A');
}
void stores();

// @ts-expect-error: a file is opened
new RedbStore('records.redb');
// @ts-expect-error: a store has load
app.store('own.example', { get: () => [] });

async function disposed(): Promise<void> {
  await using short = await new App({ listen: [] }).start();
  console.log(short.addresses.length);
}
void disposed();

async function main(): Promise<void> {
  await app.start();
  const reply: Message = await app.query({ name: 'example.com', type: 'TXT' });
  const same: Message = await app.query('example.com', 'TXT', { client: '192.0.2.1:53' });
  read(same.answers[0], reply);
  const raw: Buffer | null = await app.queryMessage(makeQuery({ name: 'example.com' }), {
    client: '192.0.2.1:53',
  });
  console.log(reply.answers[0].data, raw && decodeMessage(raw)?.rcode, app.addresses[0]);
  await app.reload();
  await app.stop();
}
void main();

// @ts-expect-error: a record has data
app.handle('a.example', (req, res) => res.answer({ type: 'A', ttl: 60 }));
// @ts-expect-error: seconds are a number
app.handle('a.example', (req, res) => res.answer({ type: 'A', ttl: '60', data: '192.0.2.1' }));
const octets = Buffer.of(1);
app.handle('typed.example', (req, res) => {
  const signature = { signersName: 'a.example', signature: octets, typeCovered: 'A' };
  const times = { originalTTL: 60, inception: 1, expiration: 2, labels: 2, keyTag: 7 };
  res.answer(
    { type: 'RRSIG', data: { ...signature, ...times, algorithm: 13 } },
    { type: 'NSEC3', data: { algorithm: 1, flags: 0, iterations: 0, salt: octets, rrtypes: [] } },
    { type: 'CERT', data: '1 2 3 AA==' },
    { type: 'HTTPS', data: { priority: 1, target: '.', params: { alpn: ['h2'], port: 443 } } },
    { type: 'CAA', data: { issuerCritical: true, tag: 'issue', value: '' } },
    { type: 'TXT', data: ['a', octets] },
    { type: req.type, data: '192.0.2.1' },
  );
  // @ts-expect-error: a field that there is not
  res.answer({ type: 'MX', data: { exchnge: 'mx.example' } });
  // @ts-expect-error: a field that is missing
  res.answer({ type: 'SRV', data: { port: 53 } });
  // @ts-expect-error: addresses have no fields
  res.answer({ type: 'A', data: { address: '192.0.2.1' } });
});
app.handle('a.example', (req, res) => res.noData().cache({ ttl: 1, vary: ['client', 'subnet'] }));
// @ts-expect-error: there is no such kind
app.handle('a.example', (req, res) => res.noData().cache({ ttl: 1, vary: ['moon'] }));
// @ts-expect-error: there is no such option
new App({ listening: '127.0.0.1:53' });

class OwnStore extends Store {
  async get<T extends SupportedRecordType>(zone: string, type?: T): Promise<ZoneData[T][] | null> {
    return type === 'A' ? (['192.0.2.1'] as ZoneData[T][]) : null;
  }
  set() {}
  append() {}
  delete() {}
  handler = (req: DNSRequest, res: DNSResponse, next: NextFunction) => next();
}
const server = new DefaultServer({
  networks: [new DNSOverUDP({ address: '127.0.0.1', port: 53 })],
  multithreaded: true,
});
server.use((req, res, next) => {
  res.once('done', (res) => console.log(res.packet.rcode, res.metadata.ts.responseTimeNs));
  res.packet.rcode = RCode.REFUSED;
  next();
});
server.handle('example.com/A', (req, res) => {
  if (req.packet.questions[0].type !== 'A') return res.errors.notImplemented();
  return res.answer([
    { name: 'example.com', type: 'A', class: 'IN', ttl: 300, data: '192.0.2.1' },
    { type: 'MX', data: { preference: 10, exchange: 'mx.example' } },
    { type: 'CERT', data: Buffer.of(1) },
  ]);
});
// @ts-expect-error: a field that there is not
server.handle('a', (req, res) => res.answer({ type: 'MX', data: { exchnge: 'a' } }));
server.start(() => console.log('started'));
new DinoDNS({ networks: [], storage: new OwnStore(), cache: new DefaultCache({ maxEntries: 1 }) });
new DefaultStore().set('example.com', 'A', '192.0.2.1');
new DefaultStore().set('example.com', 'MX', [{ exchange: 'mx.example' }]);
// @ts-expect-error: there is no such type
new DefaultStore().set('example.com', 'AAAAA', '::1');
// @ts-expect-error: an exchange is missing
new DefaultStore().append('example.com', 'MX', { preference: 1 });

const same: DNSServer<Packet> = server;
same.networks[0].on('error', () => same.stop());
const serializers: Serializer<Packet>[] = [new UDPSerializer(), new TCPSerializer()];
const packet: Packet = new DNSPacketSerializer().decode(serializers[0].encode({ id: 1 }));
console.log(packet.flag_rd && packet.rcode, new storage.DefaultStore().get('a.example'));
const http = new DNSOverHTTP({ address: '127.0.0.1', port: 443, timeout: 1000 });
http.server.on('session', (session) => session.destroy());
const trie = new Trie<{ A: string }>();
trie.add('a.example', 'A', '192.0.2.1');
// @ts-expect-error: an address is a text
trie.add('a.example', 'A', 7);
