import sys

import zonda

USERS = {"ann": "192.0.2.10", "bob": "192.0.2.11"}
app = zonda.App(sys.argv[1])


@app.handle(":user.users.example")
def address(query, reply, user):
    if user not in USERS:
        reply.nxdomain(ttl=60)
    elif query.type != "A":
        reply.no_data(ttl=60)
    else:
        reply.answer(zonda.A(USERS[user], ttl=60))


app.run()
