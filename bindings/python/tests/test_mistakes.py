"""Mistakes in the arguments of an app and of its methods: what they are told as."""

from __future__ import annotations

import asyncio
import importlib.metadata
import warnings

import pytest

import zonda


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"listen": 5}, 'listen must be an address such as "127.0.0.1:5300", or a list of them'),
        ({"listen": ["127.0.0.1:0", 5]}, "listen must be an address .* or a pair .*, not 5$"),
        ({"listen": ("127.0.0.1", 70_000)}, "the port of listen must be from 0 to 65535"),
        ({"listen": b"127.0.0.1:0"}, "listen must be an address"),
        ({"listen": ("127.0.0.1", True)}, "listen must be an address"),
        ({"config": 5}, "config must be the path of a file, not 5"),
        ({"workers": "x"}, "workers must be a whole number from 1 to 65535, not 'x'"),
        ({"workers": 1.5}, "workers must be a whole number .*, not 1.5"),
        ({"workers": 0}, "workers must be"),
        ({"workers": True}, "workers must be"),
        ({"waiting_max": -1}, "waiting_max must be a whole number from 1 to 4294967295, not -1"),
        ({"waiting_max": 2**40}, "waiting_max must be"),
        ({"metrics": 5}, 'metrics must be an address such as "127.0.0.1:9153"'),
        ({"deadline": -1}, r"deadline must be a number of seconds from 0 to 1e\+09, not -1"),
        ({"deadline": float("nan")}, "deadline must be .*, not nan"),
        ({"deadline": float("inf")}, "deadline must be .*, not inf"),
        ({"deadline": "5"}, "deadline must be a number of seconds, not '5'"),
        ({"allow_failed_zones": "no"}, "allow_failed_zones must be True or False, not 'no'"),
        ({"reuse_port": 1}, "reuse_port must be True or False, not 1"),
        ({"lifespan": 5}, "lifespan must be a function of the app, not 5"),
        ({"shares_addresses": True, "reuse_port": False}, "is the former name of reuse_port"),
    ],
)
def test_a_wrong_argument_of_an_app_is_told_where_it_is_made(arguments, text):
    with warnings.catch_warnings(), pytest.raises(zonda.ConfigError, match=text) as told:
        warnings.simplefilter("ignore", DeprecationWarning)
        zonda.App(**arguments)
    assert told.value.code == "ZONDA_CONFIG" and isinstance(told.value, ValueError)
    assert isinstance(told.value, TypeError) == ("lifespan" in arguments)


def test_addresses_are_texts_and_pairs_one_or_several():
    async def scenario():
        for listen in (
            ("127.0.0.1", 0),
            [("127.0.0.1", 0)],
            (("127.0.0.1", 0), "127.0.0.1:0"),
            (it for it in ["127.0.0.1:0"]),
        ):
            async with zonda.App(listen, workers=1) as app:
                assert {host for host, _ in app.addresses} == {"127.0.0.1"}
        assert zonda.App([("::1", 5300), "127.0.0.1:53"])._listen == ["[::1]:5300", "127.0.0.1:53"]

    asyncio.run(scenario())


def test_the_addresses_of_an_app_are_servers_for_another_one():
    elsewhere = zonda.App(("127.0.0.1", 0), workers=1)
    elsewhere.add_handler("*", lambda query, reply: zonda.A("192.0.2.80"))

    async def scenario():
        async with elsewhere:
            app = zonda.App([], workers=1)
            app.forward(*elsewhere.addresses)
            async with app:
                assert (await app.query("www.example")).of(zonda.A)[0].ip == "192.0.2.80"
                await app.set_forwards(*elsewhere.addresses)
                assert (await app.query("a.example")).of(zonda.A)[0].ip == "192.0.2.80"
                with pytest.raises(zonda.ConfigError, match="set_forwards must be an address"):
                    await app.set_forwards(5)
        for wrong in (5, None, ("192.0.2.1",)):
            with pytest.raises(zonda.ConfigError, match="forward must be an address"):
                app.forward(wrong)

    asyncio.run(scenario())


def test_the_former_name_of_reuse_port_works_and_warns():
    with pytest.warns(DeprecationWarning, match="reuse_port"):
        app = zonda.App("127.0.0.1:0", workers=1, shares_addresses=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        second = zonda.App("127.0.0.1:0", workers=1, reuse_port=True)

    async def scenario():
        async with app:
            second._listen = [f"127.0.0.1:{app.addresses[0][1]}"]
            async with second:
                assert second.addresses == app.addresses

    asyncio.run(scenario())


def test_run_where_an_event_loop_runs_says_what_to_do():
    async def notebook():
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a coroutine that was never awaited
            with pytest.raises(zonda.StateError, match="await app.serve()") as told:
                zonda.App([]).run()
        assert told.value.code == "ZONDA_STATE"

    asyncio.run(notebook())


def test_the_package_tells_its_version():
    try:
        installed = importlib.metadata.version("zonda")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the package is not installed")
    assert zonda.__version__ == installed


def test_a_wrong_question_or_client_is_a_query_error(app, serve):
    async def scenario(client):
        for arguments, options, text in [
            (("a..b",), {}, 'name "a..b": '),
            ((5,), {}, "the name must be a text such as .*, not 5"),
            (("a.example", "AAAAA"), {}, "'AAAAA' is not a record type such as \"MX\""),
            (("a.example", 70_000), {}, "the number of a record type must be .* 65535, not 70000"),
            (("a.example", -1), {}, "not -1"),
            (("a.example",), {"client": "here"}, "the client must be an address .* 'here'"),
            (("a.example",), {"client": 5}, "the client must be an address .* not 5"),
            (("a.example",), {"dnssec_ok": 5}, "dnssec_ok must be True or False, not 5"),
            (("a.example",), {"options": [5]}, "an option must be a pair of code and octets"),
            (("a.example",), {"options": [(70_000, b"")]}, "the code of an option must be"),
        ]:
            with pytest.raises(zonda.QueryError, match=text) as told:
                await app.query(*arguments, **options)
            assert told.value.code == "ZONDA_QUERY" and isinstance(told.value, ValueError)
        with pytest.raises(zonda.QueryError, match="the message must be bytes, not 'text'"):
            await app.query_message("text")
        assert (await app.query("a.example", client=("192.0.2.7", 53))).rcode == "REFUSED"

    serve(app, scenario)


def test_wrong_names_texts_and_types_are_told_where_they_are_given(app):
    app.zone("twice.example", text="@ SOA . . 1 2 3 4 5")
    for call, text in [
        (lambda: app.zone(5, "a.zone"), 'the name of a zone must be a text such as "example.org"'),
        (lambda: app.zone("a.example", text=5), "the text of a zone must be that of a master"),
        (lambda: app.store(None, zonda.MemoryStore()), "the name of a zone must be a text"),
        (lambda: zonda.MemoryStore().load("a..b"), 'zone "a..b": '),
        (lambda: app.zone("a..b", text="x"), 'zone "a..b": '),
        (lambda: app.store("a..b", zonda.MemoryStore()), 'zone "a..b": '),
        (lambda: app.zone("Twice.example.", text="x"), "'Twice.example.' is given twice"),
        (lambda: app.store("twice.example", zonda.MemoryStore()), "is given twice"),
    ]:
        with pytest.raises(zonda.ZoneError, match=text) as told:
            call()
        assert told.value.code == "ZONDA_ZONE"
    for types in (5, [5], [None]):
        with pytest.raises(zonda.PatternTypeError, match='types must be texts such as "A"'):
            app.handle("a.example", types)
    with pytest.raises(zonda.PatternTypeError, match="a pattern must be a text"):
        app.handle(5)
    with pytest.raises(zonda.PatternTypeError, match="a suffix must be a text") as told:
        app.route(5)
    assert told.value.code == "ZONDA_PATTERN"
    assert isinstance(told.value, zonda.PatternError) and isinstance(told.value, TypeError)
    for url in ("http://127.0.0.1", "redis://127.0.0.1/x"):
        with pytest.raises(zonda.ConfigError, match="redis://"):
            zonda.RedisStore(url)
    seconds = "compare_every must be a number of seconds from 0 on, not"
    for every, kind in ("5", zonda.ConfigTypeError), (None, TypeError), (-1, zonda.ConfigError):
        for store, url in (
            (zonda.RedisStore, "redis://127.0.0.1"),
            (zonda.PostgresStore, "postgresql://127.0.0.1/x"),
        ):
            with pytest.raises(kind, match=f"{seconds} {every!r}"):
                store(url, compare_every=every)


def test_advice_and_errors_name_the_options_of_a_program_and_not_flags_and_keys(caplog):
    async def scenario():
        async with zonda.App("0.0.0.0:0", workers=1):
            pass
        with pytest.raises(zonda.ConfigError, match='^listen: it cannot be "127.0.0.1:x"; write '):
            async with zonda.App("127.0.0.1:x"):
                pass

    with caplog.at_level("WARNING", logger="zonda"):
        asyncio.run(scenario())
    advice = [record.getMessage() for record in caplog.records if "flood" in record.getMessage()]
    assert len(advice) == 1 and "--" not in advice[0], advice
    assert "listen: 0.0.0.0:0 can be reached" in advice[0] and "`config`" in advice[0]


@pytest.mark.parametrize(
    ("make", "value"),
    [
        (lambda: zonda.A("999.1.1.1"), "999.1.1.1"),
        (lambda: zonda.MX("mx.example", 10), "mx.example"),
        (lambda: zonda.TXT(5), 5),
        (lambda: zonda.A("192.0.2.1", owner="a..b"), "a..b"),
        (lambda: zonda.A("192.0.2.1", ttl=-1), -1),
    ],
)
def test_a_wrong_field_of_a_record_has_its_value(make, value):
    with pytest.raises(zonda.RecordError, match=str(value)) as told:
        make()
    assert told.value.value == value


def test_a_response_code_of_more_than_twelve_bits_is_told(app, serve):
    @app.handle("*")
    def large(query, reply):
        with pytest.raises(zonda.RecordError, match="from 0 to 4095, not 5000"):
            reply.rcode = 5000
        reply.rcode = 4095

    async def scenario(client):
        assert (await app.query("a.example")).rcode == "RCODE4095"

    serve(app, scenario)


def test_an_error_handler_gets_what_its_parameters_are_named_as(app, serve):
    @app.handle("*")
    def fails(query, reply):
        raise KeyError(query.name)

    @app.on_error
    def answer(query, reply, error):
        return zonda.TXT(f"{query.name} {type(error).__name__}")

    with pytest.raises(zonda.ConfigTypeError, match=r"error handler .* \(error, query, reply\)"):
        app.on_error(lambda: None)

    async def scenario(client):
        assert (await app.query("a.example", "TXT")).of(zonda.TXT)[0].txts == ("a.example. KeyError",)

    serve(app, scenario)


def test_texts_and_flags_of_a_reply_that_are_none_are_told(app, serve):
    wrong = []

    def told(function, *arguments):
        with pytest.raises(zonda.RecordTypeError) as caught:
            function(*arguments)
        wrong.append(str(caught.value))

    @app.handle("a.example")
    def answers(query, reply):
        told(reply.tag, 5, "x")
        told(reply.servfail, 5)
        told(reply.extended_error, "Blocked", None)
        told(setattr, reply, "aa", 1)
        told(setattr, reply, "tc", "no")
        with pytest.raises(zonda.RecordError, match="of a tag must be a text, not '.udc80'"):
            reply.tag("\udc80", "x")
        reply.servfail("away")

    async def scenario(client):
        assert (await app.query("a.example")).error == (0, "away")

    serve(app, scenario)
    assert wrong == [
        "the key of a tag must be a text, not 5",
        "the reason must be a text, not 5",
        "the text of an extended error must be a text, not None",
        "aa must be True or False, not 1",
        "tc must be True or False, not 'no'",
    ]


def test_numbers_of_a_reply_that_are_out_of_bounds_are_told(app, serve):
    wrong = []

    def told(function, *arguments, **options):
        try:
            function(*arguments, **options)
        except (TypeError, ValueError) as error:
            wrong.append(str(error))

    @app.handle("a.example")
    def answers(query, reply):
        a = zonda.A("192.0.2.1")
        told(reply.answer, a, ttl=-1)
        told(reply.nxdomain, ttl=2**31)
        told(reply.cache, 2**40)
        told(reply.cache, "60")
        told(reply.cache, 60, 5)
        told(setattr, reply, "rcode", 99_999)
        told(setattr, reply, "rcode", "NXDOMIAN")
        told(setattr, reply, "rcode", 1.5)
        told(reply.extended_error, -1)
        told(reply.extended_error, "Blokced")
        reply.answer(a, ttl=2**31 - 1)

    async def scenario(client):
        assert (await app.query("a.example")).answers[0].ttl == 2**31 - 1

    serve(app, scenario)
    ttl = "the ttl must be a whole number from 0 to 2147483647, not"
    assert wrong == [
        f"{ttl} -1",
        f"{ttl} 2147483648",
        f"{ttl} 1099511627776",
        f"{ttl} '60'",
        'vary must be "client" or "subnet", not 5',
        "a response code must be a whole number from 0 to 4095, not 99999",
        "'NXDOMIAN' is not the name of a response code, such as \"NXDOMAIN\"",
        "a response code must be a whole number from 0 to 4095, not 1.5",
        "an extended error must be a whole number from 0 to 65535, not -1",
        "'Blokced' is not the name of an extended error, such as \"Blocked\"",
    ]
