/* Looks up each name as programs do, and prints its addresses in their order, or the error. */
#define _GNU_SOURCE
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

int main(int count, char **names)
{
	for (int number = 1; number < count; number++) {
		struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
		struct addrinfo *found = NULL;
		int error = getaddrinfo(names[number], "80", &hints, &found);
		printf("%s", names[number]);
		for (struct addrinfo *it = found; it; it = it->ai_next) {
			char text[64];
			getnameinfo(it->ai_addr, it->ai_addrlen, text, sizeof text, NULL, 0, NI_NUMERICHOST);
			printf(" %s", text);
		}
		if (error)
			printf(" %s", error == EAI_AGAIN ? "again" : "none");
		printf("\n");
		fflush(stdout);
	}
	return 0;
}
