"""A class for each type of record that the core knows.

The classes are made from the core's own table of types. A record can be compared and hashed, and
cannot be changed. Its fields are those of Zonda's JSON zones, taken in order or by name:

    MX(10, "mx.example.org", ttl=3600)
    MX(preference=10, exchange="mx.example.org", owner="example.org")
    MX(rdata=b"\\x00\\x0a\\x02mx\\x00")

``records.pyi`` tells their types; ``python -m zonda.records`` prints it anew.
"""

from __future__ import annotations

from typing import Any

from . import _core
from ._core import Record

__all__: list[str] = []


def _field(place: int, name: str) -> property:
    """A field that is read from the record's data."""

    def read(record: Record) -> Any:
        return record._field(place)

    return property(read, doc=f"The field {name}.")


def _class(mnemonic: str, number: int, fields: list[tuple[str, str]]) -> type[Record]:
    """The class of a type."""
    name = mnemonic.replace("-", "_")
    members: dict[str, Any] = {
        "__slots__": (),
        "__module__": "zonda",
        "__doc__": f"{mnemonic}: {', '.join(field for field, _ in fields)}.",
        "__match_args__": tuple(field for field, _ in fields),
        "_number": number,
    }
    for place, (field, _) in enumerate(fields):
        members[field] = _field(place, field)
    return type(name, (Record,), members)


for _mnemonic, _number, _fields in _core.schema():
    _made = _class(_mnemonic, _number, _fields)
    _core.register(_number, _made)
    globals()[_made.__name__] = _made
    __all__.append(_made.__name__)


# What a field takes, and what it gives, by its kind.
_NUMBERS = ("U8", "U16", "U32", "U64")
_NUMBERS_WITH_TEXT = ("Ttl", "Time", "Algorithm", "CertType", "DsyncScheme")
_OCTETS = (
    "Hex", "HexByLength", "Base32ByLength", "Base64", "OptionalBase64", "DashBase64",
)
_OPTIONAL = (
    "OptionalCharString", "OptionalBase64", "Names", "TypeBitmap", "FlatTypeBitmap", "SvcParams",
    "Prefixes",
)


def _types(kind: str) -> tuple[str, str]:
    """What a field of a kind takes, and what it gives."""
    kind = kind.split("(")[0]
    if kind in _NUMBERS:
        return "int", "int"
    if kind in _NUMBERS_WITH_TEXT:
        return "int | str", "int"
    if kind in ("Ipv4", "Ipv6"):
        return f"str | {kind.replace('Ipv', 'IPv')}Address", "str"
    if kind == "Name":
        return "_Name", "str"
    if kind in ("CharString", "Text", "Tag"):
        return "str | bytes", "str"
    if kind == "OptionalCharString":
        return "str | bytes | None", "str | None"
    if kind == "CharStrings":
        return "str | bytes | Sequence[str | bytes]", "tuple[str, ...]"
    if kind in ("Names", "TypeBitmap"):
        return "str | Sequence[str]", "tuple[str, ...]"
    if kind in ("FlatTypeBitmap", "Prefixes"):
        return "str | Sequence[str]", "str"
    if kind == "Type":
        return "str | int", "str"
    if kind == "SvcParams":
        return "str | Mapping[str, object]", "str"
    if kind in _OCTETS:
        return "str | bytes", "bytes"
    return "str", "str"


_LISTS = ("CharStrings", "Names", "TypeBitmap", "FlatTypeBitmap", "Prefixes")


def _stub() -> str:
    """The text of ``records.pyi``."""
    lines = [
        "# Made by `python -m zonda.records`; a test holds it to the core's table of types.",
        "",
        "from collections.abc import Mapping, Sequence",
        "from ipaddress import IPv4Address, IPv6Address",
        "from typing import Literal, Protocol, TypeAlias, overload",
        "",
        "from ._core import Record",
        "",
        "__all__ = [",
        *(f'    "{mnemonic.replace("-", "_")}",' for mnemonic, _, _ in _core.schema()),
        "]",
        "",
        "# A type that a handler may be for; others are written behind the `/` of the pattern.",
        "_RecordType: TypeAlias = Literal[",
        *(f'    "{mnemonic}",' for mnemonic, _, _ in _core.schema()),
        '    "ANY",',
        "]",
        "",
        "class _Name(Protocol):",
        '    """A name\'s text, or an object whose `str()` is that."""',
        "",
        "    def __str__(self) -> str: ...",
        "",
    ]
    for mnemonic, _, fields in _core.schema():
        places = ", ".join(f'"{field}"' for field, _ in fields)
        lines += [
            f"class {mnemonic.replace('-', '_')}(Record):",
            f"    __match_args__ = ({places}{',' if len(fields) == 1 else ''})",
            "    @overload",
        ]
        arguments = []
        for place, (field, kind) in enumerate(fields):
            takes, _ = _types(kind)
            is_last = place == len(fields) - 1
            default = " = ..." if kind.split("(")[0] in _OPTIONAL else ""
            if is_last and kind in _LISTS and len(fields) == 1:
                arguments.append(f"*{field}: {takes}")
            else:
                arguments.append(f"{field}: {takes}{default}")
        starred = any(argument.startswith("*") for argument in arguments)
        end = ["ttl: int = 300", "owner: _Name | bytes | None = None"]
        given = ", ".join([*arguments, *([] if starred else ["*"]), *end])
        lines.append(f"    def __new__(cls, {given}) -> {mnemonic.replace('-', '_')}: ...")
        lines.append("    @overload")
        lines.append(
            f"    def __new__(cls, *, rdata: bytes, {', '.join(end)})"
            f" -> {mnemonic.replace('-', '_')}: ..."
        )
        for field, kind in fields:
            lines += ["    @property", f"    def {field}(self) -> {_types(kind)[1]}: ..."]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    print(_stub(), end="")
