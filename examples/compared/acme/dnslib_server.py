import sys
from threading import Thread

from dnslib import QTYPE, RCODE, RR, TXT
from dnslib.server import BaseResolver, DNSServer

tokens = set()


class Challenges(BaseResolver):
    def resolve(self, request, handler):
        reply = request.reply()
        account, _, zone = str(request.q.qname).lower().rstrip(".").partition(".")
        if zone != "auth.example":
            reply.header.rcode = RCODE.REFUSED
        elif request.q.qtype == QTYPE.TXT:
            for of, token in list(tokens):
                if of == account:
                    reply.add_answer(RR(request.q.qname, QTYPE.TXT, rdata=TXT(token), ttl=0))
        return reply


def follow():
    for line in sys.stdin:
        verb, account, token = line.split()
        if verb == "set":
            tokens.add((account, token))
        else:
            tokens.discard((account, token))


Thread(target=follow, daemon=True).start()
host, port = sys.argv[1].split(":")
DNSServer(Challenges(), address=host, port=int(port), tcp=True).start_thread()
DNSServer(Challenges(), address=host, port=int(port)).start()
