"""dnspython as a client of Zonda: `dnspython.py PART KEY SECRET SERVER…`, each server ADDRESS:PORT."""

import sys
import time

import dns.flags
import dns.message
import dns.name
import dns.opcode
import dns.query
import dns.rcode
import dns.rdatatype
import dns.tsig
import dns.tsigkeyring
import dns.update
import dns.versioned
import dns.xfr
import dns.zone

ORIGIN = dns.name.from_text("keyed.test.")
# Seconds that a reply, or what is waited for, may take.
TIMEOUT = 20


class Server:
    """A server, and the key of messages to it."""

    def __init__(self, address, keyring):
        host, port = address.rsplit(":", 1)
        self.place = {"where": host, "port": int(port), "timeout": TIMEOUT}
        self.keyring = keyring

    def send(self, message, over=dns.query.tcp):
        """Sends a message; the signature of the reply is verified."""
        return over(message, **self.place)

    def update(self, is_signed=True):
        """A message that changes the zone."""
        return dns.update.UpdateMessage(ORIGIN, keyring=self.keyring if is_signed else None)

    def change(self, fill, expected=dns.rcode.NOERROR):
        """Sends a change over UDP and over TCP, of which the second one is another message."""
        for over in (dns.query.udp, dns.query.tcp):
            message = self.update()
            fill(message)
            reply = self.send(message, over)
            assert reply.rcode() == expected, (over, reply)
            assert reply.had_tsig, reply
            assert reply.opcode() == dns.opcode.UPDATE, reply

    def data(self, name, rtype):
        """The records of a name and type, as text, and the TTL of the set."""
        question = dns.message.make_query(name, rtype)
        answer = self.send(question, dns.query.udp).answer
        return sorted(record.to_text() for rrset in answer for record in rrset)

    def serial(self):
        """The serial of the zone; none while there is no answer."""
        soa = self.data("keyed.test", "SOA")
        return int(soa[0].split()[2]) if soa else None

    def whole(self):
        """The zone by AXFR."""
        zone = dns.versioned.Zone(ORIGIN, relativize=False)
        self.inbound(zone)
        return zone

    def inbound(self, zone):
        """Brings a zone up to date: by AXFR if it is empty, else by IXFR."""
        query, _ = dns.xfr.make_query(zone, keyring=self.keyring)
        place = dict(self.place, txn_manager=zone, query=query)
        dns.query.inbound_xfr(udp_mode=dns.query.UDPMode.NEVER, **place)
        return query.question[0].rdtype


def updates(server):
    """Adds, replaces and deletes records, under each kind of prerequisite."""
    server.change(lambda it: it.add("new", 60, "A", "192.0.2.7", "192.0.2.8"))
    assert server.data("new.keyed.test", "A") == ["192.0.2.7", "192.0.2.8"]
    first = server.serial()
    server.change(lambda it: it.replace("new", 300, "A", "192.0.2.9"))
    assert server.data("new.keyed.test", "A") == ["192.0.2.9"]
    server.change(lambda it: it.add("new", 60, "TXT", '"two words" "and more"'))
    assert server.data("new.keyed.test", "TXT") == ['"two words" "and more"']
    server.change(lambda it: it.delete("new", "A", "192.0.2.9"))
    assert server.data("new.keyed.test", "A") == []
    server.change(lambda it: it.delete("new", "TXT"))
    server.change(lambda it: it.delete("new"))
    assert server.data("new.keyed.test", "ANY") == []
    assert server.serial() == first + 4, "of two equal messages the second one changes nothing"
    prerequisites(server)
    refusals(server)


def prerequisites(server):
    """Has prerequisites be met and not be met."""
    NOERROR = dns.rcode.NOERROR
    for require, expected in [
        (lambda it: it.present("www"), NOERROR),
        (lambda it: it.present("www", "A"), NOERROR),
        (lambda it: it.present("www", "A", "192.0.2.2"), NOERROR),
        (lambda it: it.absent("none"), NOERROR),
        (lambda it: it.absent("www", "AAAA"), NOERROR),
        (lambda it: it.present("none"), dns.rcode.NXDOMAIN),
        (lambda it: it.present("www", "AAAA"), dns.rcode.NXRRSET),
        (lambda it: it.present("www", "A", "192.0.2.3"), dns.rcode.NXRRSET),
        (lambda it: it.absent("www"), dns.rcode.YXDOMAIN),
        (lambda it: it.absent("www", "A"), dns.rcode.YXRRSET),
    ]:
        server.change(lambda it: (require(it), it.add("met", 60, "A", "192.0.2.7")), expected)
        is_met = expected == NOERROR
        assert server.data("met.keyed.test", "A") == ["192.0.2.7"] * is_met, expected
        server.change(lambda it: it.delete("met"))


def refusals(server):
    """Is refused without the key, and told when the signature is wrong."""
    message = server.update(is_signed=False)
    message.add("refused", 60, "A", "192.0.2.7")
    reply = server.send(message)
    assert reply.rcode() == dns.rcode.REFUSED and not reply.had_tsig, reply
    wrong = dns.tsigkeyring.from_text({"transfer.example.": "d3Jvbmc="})
    message = dns.update.UpdateMessage(ORIGIN, keyring=wrong)
    message.add("refused", 60, "A", "192.0.2.7")
    try:
        raise AssertionError(server.send(message))
    except dns.tsig.PeerBadSignature:
        pass
    assert server.data("refused.keyed.test", "A") == []


def transfers(server):
    """Transfers the zone, follows changes of it, and compares both ways record by record."""
    followed = server.whole()
    assert len(followed.nodes) == 4, followed.to_text()
    oldest = dns.zone.from_text(followed.to_text(relativize=False), ORIGIN, relativize=False)
    for number in range(20):
        message = server.update()
        message.replace("www", 60 + number, "A", f"192.0.2.{number + 10}")
        message.add(f"n{number}", 60, "TXT", f"version {number}")
        message.delete(f"n{number - 5}")
        assert server.send(message).rcode() == dns.rcode.NOERROR
        if number % 4 == 3:
            assert server.inbound(followed) == dns.rdatatype.IXFR
            assert same(followed, server.whole()), number
    late = dns.versioned.Zone(ORIGIN, relativize=False)
    with late.writer(True) as writer:
        for name, rdataset in oldest.iterate_rdatasets():
            writer.add(name, rdataset)
    assert server.inbound(late) == dns.rdatatype.IXFR
    assert same(late, server.whole())
    # What dnspython calls a transfer of the old kind.
    messages = dns.query.xfr(zone=ORIGIN, keyring=server.keyring, relativize=False, **server.place)
    assert same(dns.zone.from_xfr(messages, relativize=False), late)
    refused_transfers(server)


def refused_transfers(server):
    """Gets no transfer without the key."""
    server.keyring, keyring = None, server.keyring
    try:
        raise AssertionError(server.whole())
    except dns.xfr.TransferError as error:
        assert error.rcode == dns.rcode.REFUSED, error
    server.keyring = keyring


def same(one, other):
    """Whether two zones have the same records, TTLs included."""
    return records(one) == records(other)


def records(zone):
    """The records of a zone as text, sorted."""
    return sorted(
        f"{name} {ttl} {rdata.rdtype} {rdata.to_text()}" for name, ttl, rdata in zone.iterate_rdatas()
    )


def notify(primary, secondary):
    """Has the secondary fetch what has changed, which nothing else tells it."""
    wait_for(lambda: secondary.serial() == primary.serial())
    before = primary.serial()
    message = primary.update()
    message.add("new", 60, "A", "192.0.2.7")
    assert primary.send(message).rcode() == dns.rcode.NOERROR
    notification = dns.message.make_query(ORIGIN, "SOA")
    notification.set_opcode(dns.opcode.NOTIFY)
    notification.flags = (notification.flags | dns.flags.AA) & ~dns.flags.RD
    assert secondary.send(notification, dns.query.udp).rcode() == dns.rcode.REFUSED
    notification.use_tsig(secondary.keyring)
    reply = secondary.send(notification, dns.query.udp)
    assert reply.rcode() == dns.rcode.NOERROR and reply.had_tsig, reply
    assert reply.opcode() == dns.opcode.NOTIFY and reply.flags & dns.flags.AA, reply
    wait_for(lambda: secondary.serial() == before + 1)
    assert secondary.data("new.keyed.test", "A") == ["192.0.2.7"]
    secondary.keyring = None
    assert same(primary.whole(), secondary.whole())


def wait_for(holds):
    """Waits until something holds."""
    limit = time.monotonic() + TIMEOUT
    while not holds():
        assert time.monotonic() < limit, "it takes too long"
        time.sleep(0.05)


def main():
    part, key, secret, *servers = sys.argv[1:]
    keyring = dns.tsigkeyring.from_text({key: secret})
    parts = {"updates": updates, "transfers": transfers, "notify": notify}
    parts[part](*(Server(address, keyring) for address in servers))


main()
