/* Stands between a broker and libc, and does as a small shared file says: shifts the wall clock,
 * makes writes and syncs under one directory slow, or lets them fail with EIO. The monotonic clock
 * stays true, as it does on a machine whose wall clock is set.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct orders {
    int64_t clock_shift_ns;
    int32_t write_delay_ms;
    int32_t sync_delay_ms;
    int32_t failing_writes; /* how many of the next ones fail; -1: all */
    int32_t failing_syncs;
    char directory[512]; /* only files below it; empty: none */
};

static volatile struct orders *orders;

__attribute__((constructor)) static void read_orders(void) {
    const char *path = getenv("FAULT_SHIM_ORDERS");
    if (path == NULL) return;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return;
    void *mapped = mmap(NULL, sizeof(struct orders), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (mapped != MAP_FAILED) orders = mapped;
}

#define REAL(name)                     \
    static __typeof__(&name) real;     \
    if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, #name)

static int concerns(int fd) {
    char link[64], path[1024];
    size_t length = strlen((const char *)orders->directory);
    if (length == 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t got = readlink(link, path, sizeof path - 1);
    if (got < (ssize_t)length) return 0;
    return strncmp(path, (const char *)orders->directory, length) == 0;
}

static void wait_ms(int32_t ms) {
    struct timespec pause = {ms / 1000, (ms % 1000) * 1000000L};
    nanosleep(&pause, NULL);
}

/* 1: the call has to fail. */
static int is_refused(int fd, volatile int32_t *delay_ms, volatile int32_t *failing) {
    if (orders == NULL || (*delay_ms == 0 && *failing == 0) || !concerns(fd)) return 0;
    if (*delay_ms > 0) wait_ms(*delay_ms);
    if (*failing == 0) return 0;
    if (*failing > 0) --*failing;
    errno = EIO;
    return 1;
}

#define WRITE_REFUSED(fd) \
    (orders && is_refused(fd, &orders->write_delay_ms, &orders->failing_writes))
#define SYNC_REFUSED(fd) (orders && is_refused(fd, &orders->sync_delay_ms, &orders->failing_syncs))

ssize_t write(int fd, const void *data, size_t size) {
    REAL(write);
    return WRITE_REFUSED(fd) ? -1 : real(fd, data, size);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(writev);
    return WRITE_REFUSED(fd) ? -1 : real(fd, parts, count);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    REAL(pwrite);
    return WRITE_REFUSED(fd) ? -1 : real(fd, data, size, at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    REAL(pwrite64);
    return WRITE_REFUSED(fd) ? -1 : real(fd, data, size, at);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) {
    REAL(pwritev);
    return WRITE_REFUSED(fd) ? -1 : real(fd, parts, count, at);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t at) {
    REAL(pwritev64);
    return WRITE_REFUSED(fd) ? -1 : real(fd, parts, count, at);
}

ssize_t pwritev2(int fd, const struct iovec *parts, int count, off_t at, int flags) {
    REAL(pwritev2);
    return WRITE_REFUSED(fd) ? -1 : real(fd, parts, count, at, flags);
}

ssize_t pwritev64v2(int fd, const struct iovec *parts, int count, off64_t at, int flags) {
    REAL(pwritev64v2);
    return WRITE_REFUSED(fd) ? -1 : real(fd, parts, count, at, flags);
}

int fsync(int fd) {
    REAL(fsync);
    return SYNC_REFUSED(fd) ? -1 : real(fd);
}

int fdatasync(int fd) {
    REAL(fdatasync);
    return SYNC_REFUSED(fd) ? -1 : real(fd);
}

static int is_wall_clock(clockid_t clock) {
    return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
}

static void shift(struct timespec *now) {
    int64_t ns = (int64_t)now->tv_sec * 1000000000LL + now->tv_nsec + orders->clock_shift_ns;
    now->tv_sec = ns / 1000000000LL;
    now->tv_nsec = ns % 1000000000LL;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    REAL(clock_gettime);
    int code = real(clock, now);
    if (code == 0 && orders != NULL && is_wall_clock(clock)) shift(now);
    return code;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    (void)zone;
    int code = clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return code;
}

time_t time(time_t *where) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (where != NULL) *where = exact.tv_sec;
    return exact.tv_sec;
}
