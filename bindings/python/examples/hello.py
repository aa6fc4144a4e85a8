import zonda

app = zonda.App("127.0.0.1:5300")


@app.handle("hello.example", types=["TXT"])
def hello(query, reply):
    reply.answer(zonda.TXT("Hello, world!", ttl=60))


app.run()
