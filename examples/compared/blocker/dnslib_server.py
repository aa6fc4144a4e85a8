import sys

from dnslib import QTYPE, RCODE, RR, SOA, A, DNSRecord
from dnslib.server import BaseResolver, DNSServer

BLOCKED = ("ads.example", "tracker.example")
host, port = sys.argv[1].split(":")
upstream, upstream_port = sys.argv[2].split(":")


class Blocker(BaseResolver):
    def resolve(self, request, handler):
        reply = request.reply()
        name = str(request.q.qname).lower().rstrip(".")
        if not any(name == blocked or name.endswith(f".{blocked}") for blocked in BLOCKED):
            try:
                is_tcp = handler.protocol == "tcp"
                answer = request.send(upstream, int(upstream_port), tcp=is_tcp, timeout=5)
                return DNSRecord.parse(answer)
            except OSError:
                reply.header.rcode = RCODE.SERVFAIL
        elif request.q.qtype == QTYPE.A:
            reply.add_answer(RR(request.q.qname, QTYPE.A, rdata=A("0.0.0.0"), ttl=60))
        else:
            soa = SOA("ns.invalid", "hostmaster.invalid", (1, 3600, 600, 86400, 60))
            reply.add_auth(RR(request.q.qname, QTYPE.SOA, rdata=soa, ttl=60))
        return reply


DNSServer(Blocker(), address=host, port=int(port), tcp=True).start_thread()
DNSServer(Blocker(), address=host, port=int(port)).start()
