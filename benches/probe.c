/* What the scenarios run inside: small, static, and the same for everybody who confines it.
 *
 *     probe opens PATH COUNT      nanoseconds of one open and close, then of one stat
 *     probe daemons COUNT         that many double-forked daemons, each in a session of its own;
 *                                 prints the clock when it ends, the daemons keep standard output
 *     probe storm COUNT           that many processes that replace themselves by a copy for ever;
 *                                 the same clock after a tenth of a second
 *
 * Whatever is left behind ends by itself within half a minute.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1000000000LL + at.tv_nsec;
}

static int opens(const char *path, long count) {
    struct stat found;
    long long start = now(), middle;
    for (long at = 0; at < count; at++) {
        int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file < 0) return 1;
        close(file);
    }
    middle = now();
    for (long at = 0; at < count; at++)
        if (stat(path, &found)) return 1;
    printf("%lld %lld\n", (middle - start) / count, (now() - middle) / count);
    return 0;
}

static int daemons(long count) {
    for (long at = 0; at < count; at++) {
        pid_t between = fork();
        if (between < 0) return 1;
        if (between == 0) {
            setsid();
            pid_t last = fork();
            if (last == 0) {
                setsid();
                alarm(30);
                for (;;) pause();
            }
            _exit(last < 0);
        }
        int status;
        if (waitpid(between, &status, 0) < 0 || status != 0) return 1;
    }
    return 0;
}

static int storm(long count) {
    long long end = now() + 20000000000LL;
    for (long at = 0; at < count; at++) {
        pid_t one = fork();
        if (one < 0) return 1;
        if (one == 0) {
            setsid();
            while (now() < end) {
                pid_t next = fork();
                if (next > 0) _exit(0);
                usleep(200);
            }
            _exit(0);
        }
    }
    usleep(100000);
    return 0;
}

int main(int count, char **argument) {
    int failed = 2;
    if (count == 4 && !strcmp(argument[1], "opens")) return opens(argument[2], atol(argument[3]));
    if (count != 3) return 2;
    signal(SIGCHLD, SIG_DFL);
    if (!strcmp(argument[1], "daemons")) failed = daemons(atol(argument[2]));
    if (!strcmp(argument[1], "storm")) failed = storm(atol(argument[2]));
    if (!failed) {
        printf("%lld\n", now());
        fflush(stdout);
    }
    return failed;
}
