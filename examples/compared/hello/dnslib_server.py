import sys

from dnslib import QTYPE, RCODE, RR, TXT
from dnslib.server import BaseResolver, DNSServer


class Hello(BaseResolver):
    def resolve(self, request, handler):
        reply = request.reply()
        if request.q.qname != "hello.example":
            reply.header.rcode = RCODE.REFUSED
        elif request.q.qtype == QTYPE.TXT:
            reply.add_answer(RR("hello.example", QTYPE.TXT, rdata=TXT("Hello, world!"), ttl=60))
        return reply


host, port = sys.argv[1].split(":")
DNSServer(Hello(), address=host, port=int(port), tcp=True).start_thread()
DNSServer(Hello(), address=host, port=int(port)).start()
