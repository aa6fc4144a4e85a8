import { App } from 'zonda';

const app = new App({ listen: process.argv[2] });
app.handle('hello.example/TXT', () => ({ type: 'TXT', ttl: 60, data: 'Hello, world!' }));
await app.serve();
