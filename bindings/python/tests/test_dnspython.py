"""Objects of dnspython as answers."""

from __future__ import annotations

import dns.rdata
import dns.rdataset
import dns.rrset

import zonda


def test_rdata_sets_and_lists_of_them_are_answers(app, serve):
    @app.handle("rdata.example")
    def rdata(query, reply):
        reply.answer(dns.rdata.from_text("IN", "A", "192.0.2.1"), ttl=5)

    @app.handle("rdataset.example")
    def rdataset(query, reply):
        reply.answer(dns.rdataset.from_text("IN", "A", 6, "192.0.2.1", "192.0.2.2"))

    @app.handle("rrset.example")
    async def rrset(query, reply):
        reply.answer(
            dns.rrset.from_text("rrset.example.", 7, "IN", "CNAME", "target.example."),
            [dns.rrset.from_text("target.example.", 8, "IN", "MX", "10 mx.example.")],
        )

    @app.handle("returned.example")
    async def returned(query, reply):
        return dns.rrset.from_text("returned.example.", 9, "IN", "TXT", '"text"')

    async def scenario(client):
        for name, told in [
            ("rdata", "rdata.example. 5 A 192.0.2.1"),
            ("rdataset", "rdataset.example. 6 A 192.0.2.1 | rdataset.example. 6 A 192.0.2.2"),
            (
                "rrset",
                "rrset.example. 7 CNAME target.example. | target.example. 8 MX 10 mx.example.",
            ),
            ("returned", 'returned.example. 9 TXT "text"'),
        ]:
            assert await client.told(f"{name}.example", "MX") == f"NOERROR | {told}"

    serve(app, scenario)


def test_a_relative_name_is_servfail(app, serve):
    @app.handle("relative.example")
    def relative(query, reply):
        reply.answer(dns.rdata.from_text("IN", "CNAME", "relative"))

    async def scenario(client):
        assert await client.told("relative.example") == "SERVFAIL"

    serve(app, scenario)


def test_names_of_dnspython_are_names(app):
    name = dns.name.from_text("mx.example.")
    assert zonda.MX(10, name, owner=name) == zonda.MX(10, "mx.example", owner="mx.example")
