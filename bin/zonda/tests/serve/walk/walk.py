"""Runs a program in a network and a mount namespace of its own, whose resolver asks a server
outside of them, and counts the queries for each name.

    walk.py ADDRESS PORT FOLDER PROGRAM NAME...

FOLDER has the files `resolv.conf`, `nsswitch.conf` and `hosts`. Prints a line for each name: what
the program prints, ` | `, and the number of queries. Ends with code 77 where there can be no
namespaces.
"""

import ctypes
import os
import select
import socket
import subprocess
import sys
import threading

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x00020000, 0x10000000, 0x40000000
CANNOT = 77


def enter_namespaces(folder):
    """Enters namespaces that have the files of a folder, and a loopback interface that is up."""
    uid, gid = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET) != 0:
        sys.exit(CANNOT)
    for file, text in [("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")]:
        with open(f"/proc/self/{file}", "w") as out:
            out.write(text)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    for file in ["resolv.conf", "nsswitch.conf", "hosts"]:
        path = os.path.realpath(f"/etc/{file}")
        subprocess.run(["mount", "--bind", f"{folder}/{file}", path], check=True)


class Relay:
    """Passes datagrams on from port 53 inside to the server outside."""

    def __init__(self, server):
        self.inside = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.inside.bind(("127.0.0.1", 53))
        self.server = server
        self.clients = {}
        self.count = 0
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            ready, _, _ = select.select([self.inside, self.server], [], [])
            if self.inside in ready:
                query, client = self.inside.recvfrom(4096)
                self.count += 1
                self.clients[query[:2]] = client
                self.server.send(query)
            if self.server in ready:
                reply = self.server.recv(65535)
                self.inside.sendto(reply, self.clients[reply[:2]])


def main():
    address, port, folder, program, *names = sys.argv[1:]
    # A socket stays in the network in which it was made.
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.connect((address, int(port)))
    enter_namespaces(folder)
    relay = Relay(server)
    for name in names:
        before = relay.count
        told = subprocess.run([program, name], capture_output=True, text=True, timeout=60)
        print(f"{told.stdout.strip()} | {relay.count - before}")


main()
