"""Records of every type that the core knows."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import dns.rdata
import dns.rdataclass
import dns.rdatatype
import pytest

import zonda
from zonda import _core, records

ROOT = Path(__file__).parents[3]

# A sample of each type, which the tests of all languages share: type and data, as in zone files.
LINES = (ROOT / "tests" / "records.txt").read_text().splitlines()
SAMPLES = [line.split(" ", 1) for line in LINES if not line.startswith(";")]

# What else can stand in a field.
MORE = [
    ["NSEC3", "1 0 0 - 0P9MHAVEQVM6T7VBL5LOP2U3T2RP3TOM A RRSIG"],
    ["LOC", "52 22 23.000 N 4 53 32.000 E -2.00m 0.00m 10000.00m 10.00m"],
    ["SVCB", "0 svc.example.org."],
    ["CAA", "0 issue \";\""],
]

# At least so many types are known to each dnspython that may be here.
COMPARED_MIN = 60


def test_each_type_of_the_core_has_a_sample():
    known = sorted(mnemonic for mnemonic, _, _ in _core.schema())
    assert sorted(mnemonic for mnemonic, _ in SAMPLES) == known


@pytest.mark.parametrize(("mnemonic", "text"), SAMPLES + MORE)
def test_a_record_is_the_same_by_text_by_fields_and_by_octets(mnemonic, text):
    by_text = zonda.Record(mnemonic, text)
    made = getattr(zonda, mnemonic.replace("-", "_"))
    by_octets = made(rdata=by_text.rdata)
    fields = [getattr(by_octets, name) for name in made.__match_args__]
    assert made(*fields) == by_octets, "what its fields give makes the same record"
    named = dict(zip(made.__match_args__, fields))
    assert made(**named) == by_octets
    assert (by_octets.text, by_octets.rdata) == (by_text.text, by_text.rdata)
    assert isinstance(by_octets, zonda.Record) and by_octets.rtype == mnemonic
    assert eval(repr(by_octets), dict(vars(zonda))) == by_octets


@pytest.mark.parametrize(("mnemonic", "text"), SAMPLES + MORE)
def test_a_record_is_the_line_of_a_zone_file_and_that_is_the_same_record(mnemonic, text):
    made = getattr(zonda, mnemonic.replace("-", "_"))
    for owner in (None, "a\\.b.Example."):
        record = zonda.Record(mnemonic, text, ttl=7, owner=owner)
        assert str(record).startswith(f"{owner or '@'} 7 IN {mnemonic} ")
        for parsed in (zonda.Record.parse(str(record)), made.parse(str(record))):
            assert type(parsed) is made
            assert (parsed.rdata, parsed.ttl, parsed.owner) == (record.rdata, 7, record.owner)
            assert str(parsed) == str(record)


def test_a_line_has_an_origin_and_a_time_to_live_and_what_is_none_is_told():
    read = zonda.Record.parse
    record = read("www MX 10 mx ; the first", origin="example.org", ttl=60)
    assert record == zonda.MX(10, "mx.example.org", owner="www.example.org", ttl=60)
    assert read("@ 1h A 192.0.2.1", origin="example.org").owner == "example.org."
    assert read("www A 192.0.2.1") == zonda.A("192.0.2.1", owner="www", ttl=300)
    assert read("a TYPE65280 \\# 1 ff").rtype == "TYPE65280"
    for line, why in [
        ("a A 192.0.2", "192.0.2"),
        ("", "no record"),
        ("a A 192.0.2.1\nb A 192.0.2.1", "several"),
        ("$INCLUDE /etc/passwd", "directive"),
        ("a 3000000000 A 192.0.2.1", "2147483647"),
    ]:
        with pytest.raises(ValueError, match=f"(?i){why}"):
            read(line)
    with pytest.raises(ValueError, match="expected a MX record, not A"):
        zonda.MX.parse("a A 192.0.2.1")


@pytest.mark.parametrize(("mnemonic", "text"), SAMPLES + MORE)
def test_a_record_is_the_same_when_it_is_copied_and_pickled(mnemonic, text):
    for record in [
        zonda.Record(mnemonic, text, ttl=7),
        zonda.Record(mnemonic, text, owner=r"a\.b.example"),
        getattr(zonda, mnemonic.replace("-", "_"))(rdata=zonda.Record(mnemonic, text).rdata),
        zonda.Record("TYPE65280", r"\# 2 0102", owner="example", ttl=0),
    ]:
        for made in [
            copy.copy(record),
            copy.deepcopy([record])[0],
            *(pickle.loads(pickle.dumps(record, protocol)) for protocol in range(2, 6)),
        ]:
            assert (type(made), made, repr(made)) == (type(record), record, repr(record))


@pytest.mark.parametrize(("mnemonic", "text"), SAMPLES)
def test_samples_are_written_as_the_core_writes_them(mnemonic, text):
    assert zonda.Record(mnemonic, text).text == text


def test_dnspython_reads_the_same_octets_from_the_same_text():
    compared = 0
    for mnemonic, text in SAMPLES + MORE:
        try:
            rdtype = dns.rdatatype.from_text(mnemonic)
        except dns.rdatatype.UnknownRdatatype:
            continue
        known = dns.rdata.get_rdata_class(dns.rdataclass.IN, rdtype)
        if known is not dns.rdata.GenericRdata:
            text = text.replace(" ech=AEX+DQ==", "")  # it wants a key that would do
            theirs = dns.rdata.from_text(dns.rdataclass.IN, rdtype, text)
            assert zonda.Record(mnemonic, text).rdata == theirs.to_wire(), mnemonic
            compared += 1
    assert compared >= COMPARED_MIN


def test_fields_take_the_objects_that_programs_have():
    assert zonda.A(IPv4Address("192.0.2.1")) == zonda.A("192.0.2.1")
    assert zonda.AAAA(IPv6Address("2001:db8::1")).ip == "2001:db8::1"
    assert zonda.TXT("one", "two") == zonda.TXT(["one", b"two"]) == zonda.TXT(txts=("one", "two"))
    assert [len(part) for part in zonda.TXT("x" * 300).txts] == [255, 45]
    assert zonda.TXT("").txts == ("",)
    assert zonda.TXT("grün").rdata == b"\x05gr\xc3\xbcn"
    assert zonda.TXT(b"\xff\x00").txts == ("\udcff\x00",)
    assert zonda.TXT("\udcff\x00").rdata == b"\x02\xff\x00"
    assert zonda.TXT('a "quote" and a \\').txts == ('a "quote" and a \\',)
    assert zonda.MX(exchange="mx.example", preference=5).text == "5 mx.example."
    assert zonda.NSEC("b.example", ["A", "TYPE65280"]).types == ("A", "TYPE65280")
    assert zonda.NSEC("b.example", "A", "AAAA").types == ("A", "AAAA")
    assert zonda.DS(1, "RSASHA256", 2, b"\x01" * 32).digest == b"\x01" * 32
    params = {"alpn": ["h2", "h3"], "port": 443, "ipv4hint": [IPv4Address("192.0.2.1")]}
    https = zonda.HTTPS(1, ".", params)
    assert https == zonda.HTTPS(1, ".", 'alpn="h2,h3" port=443 ipv4hint=192.0.2.1')
    assert zonda.HTTPS(0, "alias.example").svc_params == ""
    assert zonda.RRSIG(*("A", 8, 2, 60, 1893456000, 1735689600, 1, "a", "AwEAAQ==")).alg == 8
    assert zonda.DNSKEY(256, 3, 8, b"\x03\x01").public_key == b"\x03\x01"


def test_records_have_a_time_to_live_and_an_owner():
    record = zonda.A("192.0.2.1")
    assert (record.ttl, record.owner) == (300, None)
    other = record.replace(ttl=60, owner="www.example")
    assert (other.ttl, other.owner, other.ip) == (60, "www.example.", "192.0.2.1")
    assert type(other) is zonda.A
    assert str(record) == "@ 300 IN A 192.0.2.1"
    assert str(other) == "www.example. 60 IN A 192.0.2.1"
    assert repr(other) == "A(ip='192.0.2.1', owner='www.example.', ttl=60)"
    assert eval(repr(other), dict(vars(zonda))) == other
    unknown = zonda.Record("TYPE65280", r"\# 2 aabb", ttl=9)
    assert repr(unknown) == r"Record('TYPE65280', '\\# 2 AABB', ttl=9)"
    assert zonda.Record(65280, rdata=b"\xaa\xbb", ttl=9) == unknown


def test_records_can_be_compared_and_hashed_but_not_changed():
    one, same, other = zonda.A("192.0.2.1"), zonda.A("192.0.2.1"), zonda.A("192.0.2.1", ttl=1)
    assert one == same and hash(one) == hash(same) and one != other
    assert len({one, same, other}) == 2
    for name in ("ttl", "ip", "fresh"):
        with pytest.raises(AttributeError):
            setattr(one, name, 1)
    match zonda.MX(10, "mx.example"):
        case zonda.MX(preference, exchange):
            assert (preference, exchange) == (10, "mx.example.")


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: zonda.A("192.0.2"), ValueError, "A record: ip: expected an IPv4 address"),
        (lambda: zonda.A(), TypeError, "A record: ip is missing"),
        (lambda: zonda.A("192.0.2.1", "192.0.2.2"), TypeError, "expected ip and no more"),
        (lambda: zonda.A(address="192.0.2.1"), TypeError, "there is no field address"),
        (
            lambda: zonda.A("192.0.2.1", tll=1),
            TypeError,
            "A record: there is no field tll; its fields are ip, owner, ttl",
        ),
        (lambda: zonda.A("192.0.2.1", ip="192.0.2.2"), TypeError, "A record: ip is given twice"),
        (lambda: zonda.A("999.1.1.1"), ValueError, "such as 192.0.2.1; it is '999.1.1.1'"),
        (lambda: zonda.MX(70000, "mx.example"), ValueError, "from 0 to 65535"),
        (lambda: zonda.MX(1, "a..b"), ValueError, "MX record: exchange: the name has an empty"),
        (lambda: zonda.TXT(["x" * 256]), ValueError, "255 octets"),
        (lambda: zonda.TXT(1), TypeError, "TXT record: txts: expected str or bytes, not 1"),
        (lambda: zonda.A("192.0.2.1", ttl=-1), ValueError, "A record: the ttl must be a whole"),
        (lambda: zonda.A("192.0.2.1", ttl=2**31), ValueError, "0 to 2147483647, not 2147483648"),
        (lambda: zonda.A("192.0.2.1", ttl=2**70), ValueError, "0 to 2147483647"),
        (lambda: zonda.A("192.0.2.1", ttl="60"), TypeError, "A record: the ttl must be"),
        (lambda: zonda.A("192.0.2.1", ttl=1.5), TypeError, "not 1.5"),
        (lambda: zonda.A("192.0.2.1").replace(ttl=-1), ValueError, "A record: the ttl"),
        (lambda: zonda.Record.parse("a A 192.0.2.1", ttl=-1), ValueError, "the ttl must be"),
        (lambda: zonda.Record(70_000, rdata=b""), ValueError, "record type must be"),
        (lambda: zonda.A(rdata=b"\x01"), ValueError, "A record: "),
        (lambda: zonda.A("192.0.2.1", owner="a..b"), ValueError, "owner: "),
        (lambda: zonda.Record("BOGUS", "1"), ValueError, "'BOGUS' is not a record type"),
        (lambda: zonda.Record("OPT", rdata=b""), ValueError, "no record has this type"),
        (lambda: zonda.Record("TXT", '"open'), ValueError, "quote"),
        (lambda: zonda.Record("TXT"), TypeError, "expected a type and the text"),
    ],
)
def test_a_mistake_is_told_with_its_type_and_field(make, error, text):
    with pytest.raises(error) as raised:
        make()
    assert text in str(raised.value)
    assert isinstance(raised.value, zonda.RecordError) and raised.value.code == "ZONDA_RECORD"


def test_every_type_of_the_core_has_a_class():
    for mnemonic, number, fields in _core.schema():
        made = getattr(zonda, mnemonic.replace("-", "_"))
        assert (made._number, list(made.__match_args__)) == (number, [name for name, _ in fields])
        assert made.__name__ in zonda.__all__


def test_the_types_for_type_checkers_are_those_of_the_core():
    made = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "zonda.records"],
        check=True, capture_output=True, text=True,
    )
    assert Path(records.__file__).with_name("records.pyi").read_text() == made.stdout
