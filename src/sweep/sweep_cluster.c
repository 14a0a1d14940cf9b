/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_cluster.c - rank and size from the environment, a rendezvous file beside the database, TCP.
 *
 * Why not MPI messages: a process in MPI_Recv polls and takes a core from a worker, and the death
 * of one process ends all.  Launchers pass the rank in the environment, the folder of the database
 * is shared on every cluster, and a closed TCP connection reports that a process has died.  So the
 * program needs no MPI to be built or to run, and works under any launcher.  The file is readable
 * by its owner only and contains a random token that a worker must present; its name contains the
 * job id, so that a stale one is not mistaken for ours. */
#include "sweep_worker.h"

#include "base/io/input.h"
#include "base/io/output.h"
#include "base/text/number.h"
#include "base/text/text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_TRIES = 600, WAIT_US = 100000, MOST_BYTES = 8192 };

static bool read_env(const char *name, uint32_t *out)
{
    const char *text = getenv(name);
    char *end;
    if (!text || !*text)
        return false;
    const unsigned long v = strtoul(text, &end, 10);
    *out = (uint32_t)v;
    return !*end && v < UINT32_MAX;
}

static void add_job(swp_cluster *c, const char *name)
{
    const char *text = getenv(name);
    size_t n = strlen(c->job);
    if (!text)
        return;
    if (n && n + 1 < sizeof c->job)
        c->job[n++] = '.';
    for (; *text && n + 1 < sizeof c->job; text++)
        c->job[n++] = (char)(orr_is_letter(*text) || orr_is_digit(*text) ? *text : '_');
    c->job[n] = 0;
}

void swp_cluster_find(swp_cluster *out)
{
    static const struct {
        /* processes on this host; number of hosts */
        const char *rank, *size, *job, *part, *local, *hosts;
    } launchers[] = {
        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE", "OMPI_MCA_orte_hnp_uri",
         "OMPI_COMM_WORLD_LOCAL_SIZE", ""},
        {"PMI_RANK", "PMI_SIZE", "PMI_JOBID", "PMI_KVS", "MPI_LOCALNRANKS", ""},
        {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_JOB_ID", "SLURM_STEP_ID", "",
         "SLURM_STEP_NUM_NODES"},
    };
    *out = (swp_cluster){.size = 1};
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        uint32_t rank, size, count;
        if (!read_env(launchers[i].rank, &rank) || !read_env(launchers[i].size, &size))
            continue;
        if (size < 2 || rank >= size)
            continue;
        out->rank = rank;
        out->size = size;
        out->is_one_host = (read_env(launchers[i].local, &count) && count == size) ||
                           (read_env(launchers[i].hosts, &count) && count == 1);
        add_job(out, launchers[i].job);
        if (i > 0)
            add_job(out, launchers[i].part);
        return;
    }
}

static void name_file(const swp_cluster *c, const char *database, char *path)
{
    snprintf(path, strlen(database) + 96, "%s-join-%s", database, c->job);
}

/* ---- rank 0 ---- */

static bool make_token(char token[SWP_TOKEN_ROOM])
{
    uint8_t bytes[(SWP_TOKEN_ROOM - 1) / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(token + 2 * i, 3, "%02x", bytes[i]);
    return true;
}

static void add_addresses(orr_buf *to)
{
    struct ifaddrs *all;
    char text[INET_ADDRSTRLEN];
    if (getifaddrs(&all) != 0)
        return;
    for (int loop = 0; loop < 2; loop++) /* loopback last: it may answer on any machine */
        for (struct ifaddrs *i = all; i; i = i->ifa_next) {
            if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET ||
                !(i->ifa_flags & IFF_LOOPBACK) != !loop)
                continue;
            struct sockaddr_in a;
            memcpy(&a, i->ifa_addr, sizeof a);
            if (inet_ntop(AF_INET, &a.sin_addr, text, sizeof text))
                orr_buf_print(to, "%s\n", text);
        }
    freeifaddrs(all);
}

/* Appears atomically: a worker finds all of it or nothing.  Readable by its owner only. */
static orr_code write_meeting_point(const char *path, orr_buf *text, orr_error *err)
{
    const mode_t before = umask(077);
    const orr_code code = orr_output_save(text, path, err);
    umask(before);
    return code;
}

/* Processes on one host use loopback, which is unreachable from outside. */
static int listen_somewhere(bool is_one_host, uint16_t *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    a.sin_addr.s_addr = htonl(is_one_host ? INADDR_LOOPBACK : INADDR_ANY);
    socklen_t len = sizeof a;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (bind(fd, (struct sockaddr *)&a, sizeof a) == 0 && listen(fd, 1024) == 0 &&
        getsockname(fd, (struct sockaddr *)&a, &len) == 0) {
        *port = ntohs(a.sin_port);
        return fd;
    }
    close(fd);
    return -1;
}

orr_code swp_cluster_listen(const swp_cluster *c,
                            const char *database,
                            char *path,
                            char token[SWP_TOKEN_ROOM],
                            int *fd,
                            orr_error *err)
{
    uint16_t port = 0;
    orr_buf text = {0};
    char host[128] = "";
    name_file(c, database, path);
    *fd = listen_somewhere(c->is_one_host, &port);
    if (*fd < 0 || !make_token(token))
        return orr_fail(err, ORR_EIO, NULL, "cannot listen for workers: %s", strerror(errno));
    gethostname(host, sizeof host - 1);
    orr_buf_print(&text, "%s\n%u\n%s\n", token, port, host);
    add_addresses(&text);
    const orr_code code = write_meeting_point(path, &text, err);
    orr_buf_fini(&text);
    return code;
}

/* ---- the others ---- */

bool swp_meeting_parse(char *text, swp_meeting *out)
{
    char *lines[3], *at = text;
    uint64_t port;
    for (size_t i = 0; i < 3; i++) {
        char *end = strchr(at, '\n');
        if (!end)
            return false;
        *end = 0;
        lines[i] = at;
        at = end + 1;
    }
    *out = (swp_meeting){.token = lines[0], .host = lines[2], .addresses = at};
    if (strlen(out->token) != SWP_TOKEN_ROOM - 1 || !orr_text_u64(orr_str_of(lines[1]), &port) ||
        port == 0 || port > UINT16_MAX)
        return false;
    out->port = (uint16_t)port;
    return true;
}

static int connect_to(const char *address, uint16_t port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    const struct timeval patience = {.tv_sec = 5};
    const int one = 1;
    if (inet_pton(AF_INET, address, &a.sin_addr) != 1)
        return -1;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(fd, (struct sockaddr *)&a, sizeof a) == 0) {
        const struct timeval forever = {0};
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &forever, sizeof forever);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
        return fd;
    }
    close(fd);
    return -1;
}

static int try_meeting_point(const char *path, char token[SWP_TOKEN_ROOM])
{
    char text[MOST_BYTES], *addresses, host[128] = "";
    swp_meeting m;
    orr_input *in;
    if (orr_input_open(path, &in, NULL))
        return -1;
    const orr_span bytes = orr_input_bytes(in);
    const size_t n = bytes.len < sizeof text ? bytes.len : sizeof text - 1;
    if (n) /* an empty file has no address */
        memcpy(text, bytes.ptr, n);
    text[n] = 0;
    orr_input_close(in);
    if (!swp_meeting_parse(text, &m))
        return -1;
    memcpy(token, m.token, SWP_TOKEN_ROOM);
    gethostname(host, sizeof host - 1);
    /* on rank 0's own machine loopback is tried first */
    int fd = strcmp(host, m.host) == 0 ? connect_to("127.0.0.1", m.port) : -1;
    for (const char *a = strtok_r(m.addresses, "\n", &addresses); a && fd < 0;
         a = strtok_r(NULL, "\n", &addresses))
        fd = connect_to(a, m.port);
    return fd;
}

orr_code swp_cluster_join(
    const swp_cluster *c, const char *database, char token[SWP_TOKEN_ROOM], int *fd, orr_error *err)
{
    char *path = orr_alloc(strlen(database) + 96, 1);
    if (!path)
        return orr_no_memory(err);
    name_file(c, database, path);
    *fd = -1;
    for (int i = 0; i < WAIT_TRIES && (*fd = try_meeting_point(path, token)) < 0; i++)
        usleep(WAIT_US);
    const orr_where w = orr_where_line(path, 0, 0);
    orr_code code = ORR_OK;
    if (*fd < 0)
        code = orr_fail(err, ORR_EIO, &w,
                        "rank %u did not find rank 0 within a minute; the folder of the database "
                        "must be the same for all processes",
                        c->rank);
    orr_free(path);
    return code;
}
