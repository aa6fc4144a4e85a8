import { App } from 'zonda';

const [, , listen, upstream] = process.argv;
const app = new App({ listen });
app.forward(upstream);
for (const name of ['ads.example', 'tracker.example', '*.ads.example', '*.tracker.example']) {
  app.handle(name, (req, res) =>
    req.type === 'A' ? { type: 'A', ttl: 60, data: '0.0.0.0' } : res.noData({ ttl: 60 }),
  );
}
await app.serve();
