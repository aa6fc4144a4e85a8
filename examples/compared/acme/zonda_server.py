import sys
from threading import Thread

import zonda

app = zonda.App(sys.argv[1])
tokens = set()


@app.handle(":account.auth.example", types=["TXT"])
def challenge(query, reply, account):
    return [zonda.TXT(token, ttl=0) for of, token in list(tokens) if of == account]


def follow():
    for line in sys.stdin:
        verb, account, token = line.split()
        if verb == "set":
            tokens.add((account, token))
        else:
            tokens.discard((account, token))


Thread(target=follow, daemon=True).start()
app.run()
