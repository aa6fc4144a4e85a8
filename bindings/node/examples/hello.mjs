import { App } from 'zonda';

const app = new App({ listen: '127.0.0.1:5300' });
app.handle('hello.example/TXT', (req, res) => {
  res.answer({ type: 'TXT', ttl: 60, data: 'Hello, world!' });
});
await app.start();
