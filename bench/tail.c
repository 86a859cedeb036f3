/* Consumers that wait at the end of the log while records are produced at a fixed pace.

   tail PORT CONSUMERS RATE WARM_SECONDS SECONDS OFFSET_AT FOUND_AT ERROR_AT < FRAMES

   FRAMES is a Fetch of one partition for each partition, then a Produce of one record for each, each
   with its length in front. Consumer i reads the partition i modulo their number: it sends its Fetch
   with the next offset written at OFFSET_AT, waits, and goes on behind what it got. FOUND_AT is where
   the answer to a Fetch has the partition's index, followed by its error code; ERROR_AT is where the
   answer to a Produce has its error code, followed by the offset. RATE records a second go to the
   partitions in turn, those of one partition always over the same connection, so the offset
   of each is known when it is sent. A delivery is one record at one consumer; its time runs from
   when the record was due to be sent. Nothing is counted that is due within WARM_SECONDS. The line of
   JSON has deliveries as requests, their times as round trips, and as seconds those until the last
   of them; where they are not complete GRACE_S after the end, the program fails. */
#include "generator.h"

enum { PRODUCERS = 20, REMEMBERED = 1 << 16, GRACE_S = 30 };
enum { PARTITION_HEAD = 42, BATCH_HEAD = 61, LAST_DELTA_AT = 23 };

struct peer {
    int fd;
    size_t partition; /* Of a consumer. */
    char *out;
    size_t out_size;
    uint64_t next; /* The offset that a consumer asks for. */
    unsigned char *in;
    size_t in_at, in_room;
};

struct partition {
    uint64_t first, end; /* Offsets: of the first record that is timed, and behind the last sent. */
    uint64_t due_ns[REMEMBERED]; /* When a record was due, by its offset modulo the size. */
};

static uint64_t big(const void *at) {
    uint64_t value;
    memcpy(&value, at, 8);
    return be64toh(value);
}

static void send_all(int fd, const char *bytes, size_t size) {
    while (size) {
        ssize_t n = send(fd, bytes, size, MSG_NOSIGNAL);
        if (n < 0) die("sending");
        bytes += n;
        size -= (size_t)n;
    }
}

/* Take in what has come, with room for the rest of an answer that has begun. */
static void receive(struct peer *p) {
    size_t whole = p->in_at < 4 ? 0 : 4 + (size_t)length_at(p->in);
    if (whole > ANSWER_MAX) { errno = 0; die("an answer of more than 1 MB"); }
    if (whole > p->in_room && !(p->in = realloc(p->in, p->in_room = whole))) die("memory");
    ssize_t n = recv(p->fd, p->in + p->in_at, p->in_room - p->in_at, MSG_DONTWAIT);
    if (n == 0) { errno = 0; die("the server closed a connection"); }
    if (n > 0) p->in_at += (size_t)n;
    else if (errno != EAGAIN) die("receiving");
}

static int has_answer(const struct peer *p) {
    return p->in_at >= 4 && p->in_at >= 4 + (size_t)length_at(p->in);
}

static void drop_answer(struct peer *p) {
    size_t size = 4 + (size_t)length_at(p->in);
    memmove(p->in, p->in + size, p->in_at -= size);
}

static void check(const unsigned char *code, const char *what) {
    if (!code[0] && !code[1]) return;
    errno = 0;
    fprintf(stderr, "error %d; ", code[0] * 256 + code[1]);
    die(what);
}

static void ask(struct peer *p, size_t offset_at) {
    uint64_t next = htobe64(p->next);
    memcpy(p->out + offset_at, &next, 8);
    send_all(p->fd, p->out, p->out_size);
}

static uint64_t begins, ends, delivered, last_delivered, bytes;

/* Time every record of the batches in an answer, and move the consumer behind them. */
static void take(struct peer *p, struct partition *from, const unsigned char *found) {
    check(found + 4, "a fetch was refused");
    uint32_t size = length_at(found + PARTITION_HEAD - 4);
    const unsigned char *at = found + PARTITION_HEAD, *end = at + (size == UINT32_MAX ? 0 : size);
    uint64_t now = now_ns();
    while (end - at >= BATCH_HEAD && end - at >= 12 + (ptrdiff_t)length_at(at + 8)) {
        uint64_t last = big(at) + length_at(at + LAST_DELTA_AT);
        for (; p->next <= last; p->next++) {
            uint64_t due = p->next < from->first ? 0 : from->due_ns[p->next % REMEMBERED];
            if (due < begins || due >= ends) continue;
            delivered++;
            last_delivered = now;
            taken[bucket_of((now - due) / 1000)]++;
        }
        bytes += 12 + length_at(at + 8);
        at += 12 + length_at(at + 8);
    }
}

int main(int argc, char **argv) {
    if (argc != 9) { errno = 0; die("PORT CONSUMERS RATE WARM SECONDS OFFSET_AT FOUND_AT ERROR_AT"); }
    int port = atoi(argv[1]);
    size_t consumers = (size_t)atol(argv[2]), offset_at = (size_t)atol(argv[6]);
    double gap_ns = 1e9 / atof(argv[3]), warm_s = atof(argv[4]), seconds = atof(argv[5]);
    size_t found_at = (size_t)atol(argv[7]), error_at = (size_t)atol(argv[8]);
    size_t size, frame_count;
    char *all = read_all(&size);
    struct frame *fetches = split(all, size, &frame_count);
    size_t partitions = frame_count / 2, producers = partitions < PRODUCERS ? partitions : PRODUCERS;
    struct frame *produces = fetches + partitions;
    raise_file_limit();
    struct peer *peers = calloc(producers + consumers, sizeof *peers);
    struct partition *logs = calloc(partitions, sizeof *logs);
    int epoll = epoll_create1(0);
    if (epoll < 0 || !peers || !logs) die("starting");
    for (size_t i = 0; i < producers + consumers; i++) {
        peers[i] = (struct peer){.fd = connected(port), .in = malloc(1024), .in_room = 1024};
        struct epoll_event e = {.events = EPOLLIN, .data.u64 = i};
        if (!peers[i].in || epoll_ctl(epoll, EPOLL_CTL_ADD, peers[i].fd, &e) < 0) die("connecting");
    }
    /* A record for each partition tells where it ends. */
    for (size_t i = 0; i < partitions; i++) {
        struct peer *p = &peers[i % producers];
        send_all(p->fd, produces[i].bytes, produces[i].size);
        for (receive(p); !has_answer(p); receive(p)) usleep(100);
        check(p->in + error_at, "a record was refused");
        logs[i].first = logs[i].end = big(p->in + error_at + 2) + 1;
        drop_answer(p);
    }
    for (size_t i = 0; i < consumers; i++) {
        struct peer *p = &peers[producers + i];
        struct frame *fetch = &fetches[i % partitions];
        p->partition = i % partitions;
        p->out_size = fetch->size;
        if (!(p->out = malloc(fetch->size))) die("memory");
        memcpy(p->out, fetch->bytes, fetch->size);
        p->next = logs[p->partition].end;
        ask(p, offset_at);
    }
    uint64_t started = now_ns(), sent = 0, due_deliveries = 0;
    begins = started + (uint64_t)(warm_s * 1e9);
    ends = begins + (uint64_t)(seconds * 1e9);
    double cpu_before = -1, cpu_after = -1;
    for (uint64_t now = started; now < ends || delivered < due_deliveries;) {
        struct epoll_event events[EVENTS];
        int n = epoll_wait(epoll, events, EVENTS, now < ends ? 1 : 100);
        now = now_ns();
        if (now >= begins && cpu_before < 0) cpu_before = cpu_s();
        if (now >= ends && cpu_after < 0) cpu_after = cpu_s();
        if (now > ends + (uint64_t)GRACE_S * 1000000000u) { errno = 0; die("deliveries are missing"); }
        for (int i = 0; i < n; i++) {
            struct peer *p = &peers[events[i].data.u64];
            for (receive(p); has_answer(p); drop_answer(p)) {
                if (events[i].data.u64 < producers) {
                    check(p->in + error_at, "a record was refused");
                    continue;
                }
                take(p, &logs[p->partition], p->in + found_at);
                ask(p, offset_at);
            }
        }
        for (uint64_t due; (due = started + (uint64_t)((double)sent * gap_ns)) <= now; sent++) {
            if (due >= ends) break;
            size_t i = sent % partitions;
            logs[i].due_ns[logs[i].end++ % REMEMBERED] = due;
            if (due >= begins) due_deliveries += consumers / partitions + (i < consumers % partitions);
            send_all(peers[i % producers].fd, produces[i].bytes, produces[i].size);
        }
    }
    double until_last_s = (double)(last_delivered - begins) / 1e9;
    tell(delivered, bytes, until_last_s, (cpu_after < 0 ? cpu_s() : cpu_after) - cpu_before);
    return 0;
}
