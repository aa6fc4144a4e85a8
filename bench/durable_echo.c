// The least that a durable update can cost: a server that receives a datagram, appends 250 octets to a
// file, has the disk take them (fdatasync), and replies, for one client that waits for each reply.
//
//   cc -O2 -o durable_echo bench/durable_echo.c && ./durable_echo FILE 3000
//
// Prints the server's CPU time and the time of each exchange, microseconds, without and with the disk.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { QUERY = 100, ENTRY = 250, FILE_OCTETS = 8 << 20 };

static double micros(struct timeval it) { return 1e6 * it.tv_sec + it.tv_usec; }

// CPU time of this process in user and kernel mode, microseconds.
static double cpu(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return micros(usage.ru_utime) + micros(usage.ru_stime);
}

static double now(void) {
    struct timespec it;
    clock_gettime(CLOCK_MONOTONIC, &it);
    return 1e6 * it.tv_sec + 1e-3 * it.tv_nsec;
}

static void pin(int number) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(number, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void ask(struct sockaddr_in server, int count) {
    char octets[512] = {0};
    pin(1);
    int client = socket(AF_INET, SOCK_DGRAM, 0);
    if (connect(client, (void *)&server, sizeof server) < 0) fail("connect");
    for (int it = 0; it < count; it++)
        if (send(client, octets, QUERY, 0) < 0 || recv(client, octets, sizeof octets, 0) < 0) fail("ask");
    exit(0);
}

static void serve(int server, int file, int count) {
    char octets[512];
    double used = cpu(), began = now();
    for (int it = 0; it < count; it++) {
        struct sockaddr_in client;
        socklen_t size = sizeof client;
        ssize_t length = recvfrom(server, octets, sizeof octets, 0, (void *)&client, &size);
        if (length < 0) fail("recvfrom");
        off_t place = (off_t)it * ENTRY % (FILE_OCTETS - ENTRY);
        if (file >= 0 && (pwrite(file, octets, ENTRY, place) != ENTRY || fdatasync(file))) fail("the file");
        if (sendto(server, octets, length, 0, (void *)&client, size) < 0) fail("sendto");
    }
    printf("%s disk: %.0f CPU, %.0f in all\n", file < 0 ? "without" : "with the", (cpu() - used) / count,
           (now() - began) / count);
    fflush(stdout);
}

int main(int count, char **arguments) {
    if (count != 3 || atoi(arguments[2]) < 1) return fprintf(stderr, "usage: durable_echo FILE COUNT\n"), 2;
    int file = open(arguments[1], O_RDWR | O_CREAT | O_EXCL, 0600);
    if (file < 0 || posix_fallocate(file, 0, FILE_OCTETS) || fsync(file)) fail(arguments[1]);
    unlink(arguments[1]);
    int server = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    if (bind(server, (void *)&address, size) || getsockname(server, (void *)&address, &size)) fail("bind");
    pin(0);
    for (int with_disk = 0; with_disk < 2; with_disk++) {
        if (!fork()) ask(address, atoi(arguments[2]));
        serve(server, with_disk ? file : -1, atoi(arguments[2]));
        wait(NULL);
    }
    return 0;
}
