/* Which functions of a program run, in the order in which each runs for the first time.
 *
 *     visited ADDRESSES PROGRAM [ARGUMENT]...
 *
 * ADDRESSES is a file with the places where functions of PROGRAM begin, in hexadecimal, as `nm` shows them
 * for a position-independent program. A breakpoint is set at each of them, and taken away when it is hit;
 * then its address is printed. Processes that PROGRAM starts are followed until they become other programs.
 * x86_64 only.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 1 << 17, BREAKPOINT = 0xcc };

struct place { unsigned long at; unsigned char first; };
static struct place places[MOST];
static size_t count;

static void must(long result, const char *what) {
    if (result < 0) {
        fprintf(stderr, "visited: %s: %s\n", what, strerror(errno));
        exit(1);
    }
}

static int by_address(const void *left, const void *right) {
    unsigned long a = ((const struct place *)left)->at, b = ((const struct place *)right)->at;
    return a < b ? -1 : a > b;
}

static void read_places(const char *path) {
    FILE *file = fopen(path, "r");
    must(file ? 0 : -1, path);
    while (count < MOST && fscanf(file, "%lx", &places[count].at) == 1)
        count++;
    fclose(file);
    qsort(places, count, sizeof *places, by_address);
}

static unsigned long start_of(pid_t program) {
    char path[64];
    unsigned long start = 0;
    snprintf(path, sizeof path, "/proc/%d/maps", program);
    FILE *maps = fopen(path, "r");
    must(maps && fscanf(maps, "%lx", &start) == 1 ? 0 : -1, path);
    fclose(maps);
    return start;
}

/* Whether a trap was one of ours; then the function goes on. */
static int visited(pid_t process, int memory, unsigned long start) {
    struct user_regs_struct registers;
    must(ptrace(PTRACE_GETREGS, process, 0, &registers), "read registers");
    struct place key = {.at = registers.rip - 1 - start};
    struct place *place = bsearch(&key, places, count, sizeof key, by_address);
    unsigned char now;
    if (!place)
        return 0;
    must(pread(memory, &now, 1, start + place->at), "read");
    if (now == BREAKPOINT) {
        must(pwrite(memory, &place->first, 1, start + place->at), "take a breakpoint away");
        printf("%lx\n", place->at);
    }
    registers.rip--;
    must(ptrace(PTRACE_SETREGS, process, 0, &registers), "go back");
    return 1;
}

int main(int words, char **word) {
    if (words < 3) {
        fputs("usage: visited ADDRESSES PROGRAM [ARGUMENT]...\n", stderr);
        return 2;
    }
    read_places(word[1]);
    pid_t program = fork();
    must(program, "fork");
    if (program == 0) {
        must(ptrace(PTRACE_TRACEME, 0, 0, 0), "be traced");
        execv(word[2], word + 2);
        must(-1, word[2]);
    }
    int status;
    must(waitpid(program, &status, 0), "wait");
    if (WIFEXITED(status))
        return 1;
    unsigned long start = start_of(program);
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", program);
    int memory = open(path, O_RDWR | O_CLOEXEC);
    must(memory, path);
    for (size_t index = 0; index < count; index++) {
        unsigned char breakpoint = BREAKPOINT;
        must(pread(memory, &places[index].first, 1, start + places[index].at), "read");
        must(pwrite(memory, &breakpoint, 1, start + places[index].at), "set a breakpoint");
    }
    long options = PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    must(ptrace(PTRACE_SETOPTIONS, program, 0, options), "follow");
    must(ptrace(PTRACE_CONT, program, 0, 0), "go on");
    for (;;) {
        pid_t process = waitpid(-1, &status, __WALL);
        must(process, "wait");
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            if (process == program)
                return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
            continue;
        }
        int event = status >> 16, signal = WSTOPSIG(status);
        if (event == PTRACE_EVENT_EXEC) {
            /* Another program now, in memory of its own. */
            ptrace(PTRACE_DETACH, process, 0, 0);
            continue;
        }
        if (event || signal == SIGSTOP || (signal == SIGTRAP && visited(process, memory, start)))
            signal = 0;
        ptrace(PTRACE_CONT, process, 0, signal);
    }
}
