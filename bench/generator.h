/* What the generators of load have in common: frames from standard input, connections, the clock,
   and times counted by microseconds, told as one line of JSON. */
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ANSWER_MAX = 1 << 20, EVENTS = 512, QUANTILES = 1000 };

struct frame { char *bytes; size_t size; };

static void die(const char *what) {
    fprintf(stderr, "%s: %s\n", what, errno ? strerror(errno) : "stopped");
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static double cpu_s(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec)
        + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static uint32_t length_at(const void *at) {
    uint32_t value;
    memcpy(&value, at, 4);
    return ntohl(value);
}

static char *read_all(size_t *size) {
    size_t room = 1 << 20;
    char *all = malloc(room);
    *size = 0;
    for (;;) {
        ssize_t n = read(0, all + *size, room - *size);
        if (n < 0) die("reading the frames");
        if (n == 0) return all;
        *size += (size_t)n;
        if (*size == room && !(all = realloc(all, room *= 2))) die("memory");
    }
}

static struct frame *split(char *all, size_t size, size_t *count) {
    struct frame *frames = NULL;
    *count = 0;
    for (size_t at = 0; at + 4 <= size;) {
        size_t whole = 4 + (size_t)length_at(all + at);
        if (at + whole > size) { errno = 0; die("the last frame is not whole"); }
        if (!(frames = realloc(frames, (*count + 1) * sizeof *frames))) die("memory");
        frames[(*count)++] = (struct frame){all + at, whole};
        at += whole;
    }
    if (!*count) { errno = 0; die("no frames were given"); }
    return frames;
}

static int connected(int port) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (void *)&to, sizeof to) < 0) die("connecting");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

/* As many open files as the system allows. */
static void raise_file_limit(void) {
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
}

/* Times by microseconds: exact below 4 ms, then in steps of about a thousandth. */
enum { EXACT = 4096, STEPS = 1024, BUCKETS = EXACT + 20 * STEPS };
static uint64_t taken[BUCKETS];

static size_t bucket_of(uint64_t us) {
    if (us < EXACT) return us;
    unsigned shift = 0;
    while (us >> shift >= EXACT) shift++;
    size_t at = EXACT + (shift - 1) * STEPS + ((us >> shift) - EXACT / 2) * STEPS / (EXACT / 2);
    return at < BUCKETS ? at : BUCKETS - 1;
}

static double value_of(size_t at) {
    if (at < EXACT) return (double)at;
    size_t shift = (at - EXACT) / STEPS + 1, step = (at - EXACT) % STEPS;
    return (double)((EXACT / 2 + step * (EXACT / 2) / STEPS) << shift);
}

static void tell(uint64_t requests, uint64_t bytes, double seconds, double cpu) {
    printf("{\"requests\": %lu, \"bytes\": %lu, \"seconds\": %f, \"client_cpu_s\": %f, "
           "\"round_trips_us\": [", (unsigned long)requests, (unsigned long)bytes, seconds, cpu);
    uint64_t seen = 0;
    size_t at = 0;
    for (int q = 0; q < QUANTILES && requests; q++) {
        uint64_t rank = requests * (uint64_t)q / QUANTILES;
        while (seen + taken[at] <= rank) seen += taken[at++];
        printf("%s%.0f", q ? ", " : "", value_of(at));
    }
    printf("]}\n");
}
