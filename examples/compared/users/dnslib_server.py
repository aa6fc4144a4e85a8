import sys

from dnslib import QTYPE, RCODE, RR, SOA, A
from dnslib.server import BaseResolver, DNSServer

USERS = {"ann": "192.0.2.10", "bob": "192.0.2.11"}
ZONE = "users.example"


class Users(BaseResolver):
    def resolve(self, request, handler):
        reply = request.reply()
        name = str(request.q.qname).lower().rstrip(".")
        user, _, parent = name.partition(".")
        if parent != ZONE:
            reply.header.rcode = RCODE.REFUSED
            return reply
        if user in USERS and request.q.qtype == QTYPE.A:
            reply.add_answer(RR(request.q.qname, QTYPE.A, rdata=A(USERS[user]), ttl=60))
            return reply
        if user not in USERS:
            reply.header.rcode = RCODE.NXDOMAIN
        soa = SOA(f"ns.{ZONE}", f"hostmaster.{ZONE}", (1, 3600, 600, 86400, 60))
        reply.add_auth(RR(ZONE, QTYPE.SOA, rdata=soa, ttl=60))
        return reply


host, port = sys.argv[1].split(":")
DNSServer(Users(), address=host, port=int(port), tcp=True).start_thread()
DNSServer(Users(), address=host, port=int(port)).start()
