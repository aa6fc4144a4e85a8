import sys

import zonda

listen, upstream = sys.argv[1:]
app = zonda.App(listen)
app.forward(upstream)


def block(query, reply):
    if query.type == "A":
        reply.answer(zonda.A("0.0.0.0", ttl=60))
    else:
        reply.no_data(ttl=60)


for name in ("ads.example", "tracker.example"):
    app.add_handler(name, block)
    app.add_handler(f"*.{name}", block)

app.run()
