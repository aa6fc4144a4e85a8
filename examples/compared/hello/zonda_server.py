import sys

import zonda

app = zonda.App(sys.argv[1])


@app.handle("hello.example", types=["TXT"])
def hello(query, reply):
    return zonda.TXT("Hello, world!", ttl=60)


app.run()
