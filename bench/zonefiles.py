#!/usr/bin/env python3
"""Writes many small zones, each a file NAME.zone of a directory: six records each.

    bench/zonefiles.py DIRECTORY COUNT
"""

import os
import sys

TEXT = """$TTL 3600
@ IN SOA ns1 hostmaster 1 7200 3600 1209600 3600
@ IN NS ns1
@ IN NS ns2
ns1 IN A 192.0.2.1
ns2 IN A 192.0.2.2
www IN A 198.51.{}.{}
"""


def main():
    directory, count = sys.argv[1], int(sys.argv[2])
    os.makedirs(directory, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    for number in range(count):
        file = os.open(f"{directory}/zone{number}.example.zone", flags, 0o644)
        os.write(file, TEXT.format(number >> 8 & 255, number & 255).encode())
        os.close(file)


main()
