/* A crowd of clients, each with one request under way: the next is sent when the answer is there.

   crowd PORT CONNECTIONS WARM_SECONDS SECONDS ERROR_AT < FRAMES

   FRAMES is one Kafka request after the other, each with its length in front; connection i sends
   frame i modulo their number, again and again. The two bytes at ERROR_AT of every answer (counted
   from its length on) must be zero; -1: nothing is looked at. What comes back within WARM_SECONDS
   is not counted. One line of JSON tells requests, bytes, seconds, the processor time of this
   process and a thousand quantiles of the round trips in microseconds. */
#include "generator.h"

struct client {
    int fd;
    const struct frame *frame;
    uint64_t sent_ns;
    size_t out_at, in_at;
    unsigned char *in;
    size_t in_room;
};

static int epoll;

static void send_rest(struct client *c) {
    while (c->out_at < c->frame->size) {
        ssize_t n = send(c->fd, c->frame->bytes + c->out_at, c->frame->size - c->out_at,
                         MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0) {
            if (errno != EAGAIN) die("sending");
            struct epoll_event e = {.events = EPOLLOUT, .data.ptr = c};
            epoll_ctl(epoll, EPOLL_CTL_MOD, c->fd, &e);
            return;
        }
        c->out_at += (size_t)n;
    }
}

static void begin(struct client *c) {
    c->sent_ns = now_ns();
    c->out_at = c->in_at = 0;
    send_rest(c);
}

/* Whether the whole answer is there. */
static int receive(struct client *c) {
    size_t want = c->in_at < 4 ? c->in_room : 4 + length_at(c->in);
    if (want > ANSWER_MAX) { errno = 0; die("an answer of more than 1 MB"); }
    if (want > c->in_room) {
        if (!(c->in = realloc(c->in, want))) die("memory");
        c->in_room = want;
    }
    ssize_t n = recv(c->fd, c->in + c->in_at, want - c->in_at, MSG_DONTWAIT);
    if (n == 0) { errno = 0; die("the server closed a connection"); }
    if (n < 0) {
        if (errno == EAGAIN) return 0;
        die("receiving");
    }
    c->in_at += (size_t)n;
    return c->in_at >= 4 && c->in_at >= 4 + (size_t)length_at(c->in);
}

int main(int argc, char **argv) {
    if (argc != 6) { errno = 0; die("PORT CONNECTIONS WARM_SECONDS SECONDS ERROR_AT"); }
    int port = atoi(argv[1]), count = atoi(argv[2]);
    double warm_s = atof(argv[3]), measured_s = atof(argv[4]);
    long error_at = atol(argv[5]);
    size_t size, frame_count;
    char *all = read_all(&size);
    struct frame *frames = split(all, size, &frame_count);
    raise_file_limit();
    struct client *clients = calloc((size_t)count, sizeof *clients);
    if ((epoll = epoll_create1(0)) < 0 || !clients) die("starting");
    for (int i = 0; i < count; i++) {
        struct client *c = &clients[i];
        *c = (struct client){.fd = connected(port), .frame = &frames[(size_t)i % frame_count],
                             .in = malloc(512), .in_room = 512};
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &e) < 0) die("epoll");
    }
    for (int i = 0; i < count; i++) begin(&clients[i]);
    uint64_t begins = now_ns() + (uint64_t)(warm_s * 1e9);
    uint64_t ends = begins + (uint64_t)(measured_s * 1e9), requests = 0, bytes = 0;
    double cpu_before = -1;
    for (uint64_t now = 0; now < ends;) {
        struct epoll_event events[EVENTS];
        int n = epoll_wait(epoll, events, EVENTS, 100);
        now = now_ns();
        if (now >= begins && cpu_before < 0) cpu_before = cpu_s();
        for (int i = 0; i < n; i++) {
            struct client *c = events[i].data.ptr;
            if (events[i].events & EPOLLOUT) {
                struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
                epoll_ctl(epoll, EPOLL_CTL_MOD, c->fd, &e);
                send_rest(c);
                continue;
            }
            if (!receive(c)) continue;
            if (error_at >= 0 && (c->in[error_at] || c->in[error_at + 1])) {
                errno = 0;
                fprintf(stderr, "error %d; ", c->in[error_at] * 256 + c->in[error_at + 1]);
                die("a request was refused");
            }
            uint64_t done = now_ns();
            if (done >= begins && done < ends) {
                requests++;
                bytes += c->frame->size;
                taken[bucket_of((done - c->sent_ns) / 1000)]++;
            }
            begin(c);
        }
    }
    tell(requests, bytes, measured_s, cpu_s() - cpu_before);
    return 0;
}
