/* The least that a launch of this kind can cost: the system calls of a full confinement, made once
 * each, with nothing decided, checked or reported. It is a yardstick, never a sandbox: it allows
 * every system call and grants the whole tree.
 *
 *     floor MOUNTS RULES INSTRUCTIONS PROGRAM [ARGUMENT]...
 *
 * Seven namespaces, id maps, MOUNTS mounts, loopback up, capabilities, RULES Landlock rules, a
 * seccomp program of INSTRUCTIONS with a listener, an init that waits, and exec.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Numbers of the kernel's interface, spelt here because a small libc may not bring its headers. */
enum { OPEN_TREE = 428, MOVE_MOUNT = 429, MOUNT_SETATTR = 442, LANDLOCK_CREATE = 444 };
enum { LANDLOCK_ADD = 445, LANDLOCK_RESTRICT = 446, KEYCTL = 250, CAPSET = 126, SECCOMP = 317, PIVOT_ROOT = 155 };
enum { TREE_CLONE = 1, TREE_RECURSIVE = 0x8000, TREE_EMPTY_PATH = 0x1000, MOVE_FROM_EMPTY = 4, FILTER_LISTENER = 8 };

struct attributes { uint64_t set, clear, propagation, user; };
struct instruction { uint16_t code; uint8_t yes, no; uint32_t value; };
struct program { uint16_t length; struct instruction *code; };

static void must(long result, const char *what) {
    if (result < 0) {
        fprintf(stderr, "floor: %s: %s\n", what, strerror(errno));
        _exit(125);
    }
}

static void spell(const char *path, const char *text) {
    int file = open(path, O_WRONLY | O_CLOEXEC);
    must(file, path);
    must(write(file, text, strlen(text)), path);
    close(file);
}

static int tree(const char *path, unsigned recursive) {
    int taken = syscall(OPEN_TREE, AT_FDCWD, path, TREE_CLONE | O_CLOEXEC | recursive);
    must(taken, path);
    return taken;
}

static void put(int taken, const char *path) {
    must(syscall(MOVE_MOUNT, taken, "", AT_FDCWD, path, MOVE_FROM_EMPTY), path);
    close(taken);
}

static void root(int mounts, const char *project) {
    static const char *const nodes[] = {"null", "zero", "full", "random", "urandom", "tty"};
    struct attributes readonly = {1, 0, 0, 0};
    char path[4096];
    int all, own, devices[6];

    must(mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL), "slave");
    all = tree("/", TREE_RECURSIVE);
    must(syscall(MOUNT_SETATTR, all, "", TREE_EMPTY_PATH | TREE_RECURSIVE, &readonly, sizeof readonly), "read-only");
    own = tree(project, 0);
    for (int at = 0; at < 6; at++) {
        snprintf(path, sizeof path, "/dev/%s", nodes[at]);
        devices[at] = tree(path, 0);
    }
    put(all, "/tmp");
    must(chdir("/tmp"), "chdir");
    must(syscall(PIVOT_ROOT, ".", "."), "pivot_root");
    must(umount2(".", MNT_DETACH), "umount");
    must(chdir("/"), "chdir");
    must(mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL), "proc");
    must(mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777"), "tmp");
    must(mount("tmpfs", "/dev", "tmpfs", MS_NOSUID, "mode=755"), "dev");
    for (int at = 0; at < 6; at++) {
        snprintf(path, sizeof path, "/dev/%s", nodes[at]);
        close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0666));
        put(devices[at], path);
    }
    /* The project may lie below the new /tmp. */
    for (char *slash = strchr(project + 1, '/');; slash = strchr(slash + 1, '/')) {
        int length = slash ? (int)(slash - project) : (int)strlen(project);
        snprintf(path, sizeof path, "%.*s", length, project);
        mkdir(path, 0755);
        if (!slash) break;
    }
    put(own, project);
    /* The root, proc, tmp, dev, six nodes and the project make eleven; single files fill the count. */
    for (int made = 11; made < mounts; made++) {
        int file = tree("/etc/passwd", 0);
        must(syscall(MOUNT_SETATTR, file, "", TREE_EMPTY_PATH, &readonly, sizeof readonly), "read-only");
        put(file, "/etc/passwd");
    }
    must(chdir(project), "project");
}

static void loopback(void) {
    struct ifreq request = {0};
    int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    must(any, "socket");
    strcpy(request.ifr_name, "lo");
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    must(ioctl(any, SIOCSIFFLAGS, &request), "lo up");
    close(any);
}

static void capabilities(void) {
    uint32_t head[2] = {0x20080522, 0}, none[6] = {0};
    for (int one = 0; one <= 40; one++) prctl(PR_CAPBSET_DROP, one, 0, 0, 0);
    must(syscall(CAPSET, head, none), "capset");
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
}

static void landlock(int rules) {
    uint64_t handled = 0x1fff;
    struct __attribute__((packed)) { uint64_t access; int32_t parent; } rule = {handled, -1};
    int set = syscall(LANDLOCK_CREATE, &handled, sizeof handled, 0);
    must(set, "landlock");
    for (int made = 0; made < rules; made++) {
        static const char *const places[] = {"/", "/usr", "/etc", "/dev"};
        rule.parent = open(places[made % 4], O_PATH | O_CLOEXEC);
        must(rule.parent, places[made % 4]);
        must(syscall(LANDLOCK_ADD, set, 1, &rule, 0), "rule");
        close(rule.parent);
    }
    must(syscall(LANDLOCK_RESTRICT, set, 0), "restrict");
    close(set);
}

static void filter(int length) {
    struct instruction *code = calloc(length, sizeof *code);
    struct program program = {length, code};
    int listener;
    if (!code || length < 3) _exit(125);
    for (int at = 0; at < length; at++) code[at] = (struct instruction){0x15, 0, 0, at}; /* jeq */
    code[0] = (struct instruction){0x20, 0, 0, 0};          /* load the number */
    code[1] = (struct instruction){0x05, 0, 0, length - 3}; /* past everything */
    code[length - 1] = (struct instruction){0x06, 0, 0, 0x7fff0000};
    listener = syscall(SECCOMP, 1, FILTER_LISTENER, &program);
    must(listener, "seccomp");
    free(code);
}

int main(int count, char **argument) {
    char project[2048], line[64];
    int status, namespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
                             CLONE_NEWCGROUP | CLONE_NEWNET;
    unsigned user = geteuid(), group = getegid();
    pid_t first;
    if (count < 5 || !getcwd(project, sizeof project)) return 2;
    first = syscall(SYS_clone, namespaces | SIGCHLD, NULL, NULL, NULL, NULL);
    must(first, "clone");
    if (first == 0) {
        pid_t command;
        syscall(KEYCTL, 1, NULL);
        spell("/proc/self/setgroups", "deny");
        snprintf(line, sizeof line, "%u %u 1", user, user);
        spell("/proc/self/uid_map", line);
        snprintf(line, sizeof line, "%u %u 1", group, group);
        spell("/proc/self/gid_map", line);
        root(atoi(argument[1]), project);
        loopback();
        capabilities();
        landlock(atoi(argument[2]));
        filter(atoi(argument[3]));
        command = fork();
        must(command, "fork");
        if (command == 0) {
            execv(argument[4], argument + 4);
            must(-1, argument[4]);
        }
        while (waitpid(command, &status, 0) < 0 && errno == EINTR) {}
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 125);
    }
    while (waitpid(first, &status, 0) < 0 && errno == EINTR) {}
    return WIFEXITED(status) ? WEXITSTATUS(status) : 125;
}
