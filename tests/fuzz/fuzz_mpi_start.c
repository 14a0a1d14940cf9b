/* SPDX-License-Identifier: Apache-2.0 */
/* room: schedgen */
/* fuzz_mpi_start.c - any bytes as the file that says where in the traces of two ranks to begin.  What is refused has words,
 * and the file is as it was; what is taken is written anew, and that is taken again, or refused with words
 * where the traces end. */
#include "fuzz_trace.h"

#include <orrery/lab/mpi_trace.h>

#include <string.h>

enum { RANKS = 2, MOST = 1 << 10, PATH_ROOM = 128 };

static char folder[64];

static const char *in_folder(char path[PATH_ROOM], const char *name)
{
    snprintf(path, PATH_ROOM, "%s/%s", folder, name);
    return path;
}

static void remove_folder(void)
{
    char path[PATH_ROOM];
    unlink(in_folder(path, "run-0.dat"));
    unlink(in_folder(path, "run-1.dat"));
    unlink(in_folder(path, "start"));
    rmdir(folder);
}

static void write_bytes(const char *name, const void *bytes, size_t size)
{
    char path[PATH_ROOM];
    const int fd = open(in_folder(path, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0 && write(fd, bytes, size) == (ssize_t)size && close(fd) == 0);
}

static void make_folder(void)
{
    static const char trace[] = "MPI_Init:-:1:2:0\nMPI_Barrier:1:5,1,2:2\nMPI_Bcast:2:9:10:1,4,4:1:"
                                "5,1,2:3\nMPI_Barrier:9:5,1,2:10\nMPI_Finalize:20:-:21\n";
    snprintf(folder, sizeof folder, "/dev/shm/fuzz_startXXXXXX"); /* memory */
    REQUIRE(mkdtemp(folder) != NULL);
    atexit(remove_folder);
    write_bytes("run-0.dat", trace, sizeof trace - 1);
    write_bytes("run-1.dat", trace, sizeof trace - 1);
}

static size_t read_start(uint8_t *to)
{
    char path[PATH_ROOM];
    const int fd = open(in_folder(path, "start"), O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, to, MOST) : -1;
    REQUIRE(n >= 0 && close(fd) == 0);
    return (size_t)n;
}

static orr_code convert(orr_error *err)
{
    char start[PATH_ROOM], first[PATH_ROOM];
    const orr_mpi_trace_options opt = {
        .start_path = in_folder(start, "start"), .max_collectives = 1, .is_quiet = true};
    return orr_mpi_trace_write(in_folder(first, "run-0.dat"), &opt, NULL, NULL, NULL, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t after[MOST];
    orr_error err = {0};
    if (size > MOST)
        return 0;
    if (!folder[0])
        make_folder();
    write_bytes("start", data, size);
    const orr_code code = convert(&err);
    const size_t n = read_start(after);
    if (code) {
        REQUIRE(err.message[0] && n == size && (size == 0 || memcmp(after, data, size) == 0));
        return 0;
    }
    const orr_code again = convert(&err); /* from the next place on, which the traces have */
    REQUIRE(!again || (again == ORR_EINPUT && err.message[0]));
    return 0;
}
