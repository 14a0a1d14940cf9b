/* SPDX-License-Identifier: Apache-2.0 */
#include "et_make.h"

#include <orrery/lab/stop.h>
#include <orrery/set.h>

#include "base/memory/hash.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static orr_set *set;

static void open_set(const char *path, const orr_set_options *opt)
{
    CHECK_OK(orr_set_open(path, opt, &set, &err), &err);
}

static void refuse_set(const char *path, orr_code code, const char *words)
{
    orr_set *s = (orr_set *)&err; /* must become NULL */
    CHECK_CODE(orr_set_open(path, NULL, &s, &err), code, &err);
    CHECK(s == NULL);
    CHECK_SAYS(&err, words);
}

/* The file of a rank: a chain of `count` nodes from id `base` on. */
static orr_buf chain(uint64_t base, unsigned count)
{
    orr_buf b = {0};
    put_meta(&b);
    PUT_NODE(&b, base);
    for (unsigned i = 1; i < count; i++)
        PUT_NODE(&b, base + i, base + i - 1);
    return b;
}

static void write_chain(const char *path, uint64_t base, unsigned count)
{
    orr_buf b = chain(base, count);
    write_file(path, b.ptr, b.len);
    orr_buf_fini(&b);
}

static void remove_all(const char *path)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    CHECK_EQ(system(command), 0);
    CHECK_EQ(mkdir(path, 0777), 0);
}

/* rank by rank: class and shift */
static void check_ranks(uint32_t ranks,
                        uint32_t classes,
                        const uint32_t *class_of,
                        const uint64_t *shift)
{
    CHECK_EQ_U(orr_set_rank_count(set), ranks);
    CHECK_EQ_U(orr_set_class_count(set), classes);
    for (uint32_t r = 0; r < ranks; r++) {
        CHECK_EQ_U(orr_set_class_of(set, r), class_of[r]);
        CHECK_EQ_U(orr_set_id_shift(set, r), shift[r]);
        CHECK(orr_set_error(set, r) == NULL);
    }
}

/* ---- which files ---- */

TEST(test_set__one_file_is_a_set_of_one_rank)
{
    write_chain("one.et", 1, 3);
    open_set("one.et", NULL);
    check_ranks(1, 1, (const uint32_t[]){0}, (const uint64_t[]){0});
    CHECK_EQ_U(orr_trace_columns(orr_set_trace(set, 0))->count, 3);
    CHECK_TEXT(orr_set_rank_path(set, 0), "one.et");
    CHECK(orr_set_class_ranks(set, 0) == 1 && orr_set_class_first(set, 0) == 0);
    orr_set_close(set);
    orr_set_close(NULL);
}

TEST(test_set__a_prefix_finds_its_ranks_in_number_order)
{
    char name[32];
    remove_all("d");
    for (unsigned r = 0; r < 12; r++) {
        snprintf(name, sizeof name, "d/p.%u.et", r);
        write_chain(name, 1, r + 1);
    }
    write_chain("d/pq.0.et", 1, 20);
    write_file("d/p.note", "x", 1);
    static const char *const paths[] = {"d/p", "d/p."};
    for (unsigned k = 0; k < 2; k++) {
        open_set(paths[k], NULL);
        CHECK_EQ_U(orr_set_rank_count(set), 12);
        for (uint32_t r = 0; r < 12; r++) {
            snprintf(name, sizeof name, "d/p.%u.et", r);
            CHECK_TEXT(orr_set_rank_path(set, r), name); /* 10 after 9, not after 1 */
            CHECK_EQ_U(orr_trace_columns(orr_set_trace(set, orr_set_class_of(set, r)))->count,
                       r + 1);
        }
        orr_set_close(set);
    }
}

TEST(test_set__a_prefix_without_a_folder_is_looked_for_here)
{
    write_chain("here.0.et", 1, 1);
    write_chain("here.1.et.gz", 1, 1); /* the name says gzip, the content decides */
    open_set("here", NULL);
    check_ranks(2, 1, (const uint32_t[]){0, 0}, (const uint64_t[]){0, 0});
    CHECK_TEXT(orr_set_rank_path(set, 1), "here.1.et.gz");
    orr_set_close(set);
}

TEST(test_set__a_directory_is_the_set_it_holds)
{
    remove_all("d");
    refuse_set("d", ORR_EIO, "no trace files in this directory");
    write_chain("d/b.et", 1, 2);
    write_chain("d/a.et", 1, 1);
    write_chain("d/.hidden.et", 1, 9);
    write_file("d/readme.txt", "x", 1);
    open_set("d", NULL); /* no ranks in the names: by name */
    CHECK_EQ_U(orr_set_rank_count(set), 2);
    CHECK_TEXT(orr_set_rank_path(set, 0), "d/a.et");
    CHECK_TEXT(orr_set_rank_path(set, 1), "d/b.et");
    orr_set_close(set);
    write_chain("d/p.0.et", 1, 4);
    write_chain("d/p.1.et", 1, 4);
    open_set("d/", NULL); /* the ranks count, the others do not */
    CHECK_EQ_U(orr_set_rank_count(set), 2);
    CHECK_TEXT(orr_set_rank_path(set, 0), "d/p.0.et");
    orr_set_close(set);
    write_chain("d/q.0.et", 1, 4);
    refuse_set("d", ORR_EUSAGE, "holds several sets (p, q, ...)");
    open_set("d/q", NULL);
    CHECK_EQ_U(orr_set_rank_count(set), 1);
    orr_set_close(set);
}

TEST(test_set__a_missing_or_double_rank_is_named)
{
    remove_all("d");
    write_chain("d/p.0.et", 1, 1);
    write_chain("d/p.2.et", 1, 1);
    refuse_set("d/p", ORR_EIO, "rank 1 of p has no file, but rank 2 has one: p.2.et");
    refuse_set("d", ORR_EIO, "rank 1 of p has no file");
    write_chain("d/p.1.et", 1, 1);
    write_chain("d/p.01.et", 1, 1);
    refuse_set("d/p", ORR_EUSAGE, "rank 1 has two files: p.01.et and p.1.et");
    refuse_set("d/x", ORR_EIO, "d/x: no such file, and no files of that prefix");
    refuse_set("none/x", ORR_EIO, "none/x: no such file or directory");
    refuse_set("", ORR_EIO, "no such file");
}

TEST(test_set__numbers_too_long_for_a_rank_are_names)
{
    remove_all("d");
    write_chain("d/p.99999999999999999999.et", 1, 1);
    open_set("d", NULL);
    CHECK_EQ_U(orr_set_rank_count(set), 1);
    orr_set_close(set);
}

/* ---- classes ---- */

TEST(test_set__ranks_alike_are_stored_once)
{
    remove_all("d");
    write_chain("d/p.0.et", 1, 5);
    write_chain("d/p.1.et", 1, 5);   /* the same bytes */
    write_chain("d/p.2.et", 101, 5); /* the same up to a shift */
    write_chain("d/p.3.et", 1, 6);   /* another */
    write_chain("d/p.4.et", 101, 5); /* the same bytes as 2 */
    write_chain("d/p.5.et", 0, 5);   /* a shift of -1, and an id that is not written */
    write_chain("d/p.6.et", 200, 6);
    open_set("d", NULL);
    check_ranks(7, 2, (const uint32_t[]){0, 0, 0, 1, 0, 0, 1},
                (const uint64_t[]){0, 0, 100, 0, 100, UINT64_MAX, 199});
    CHECK_EQ_U(orr_set_class_ranks(set, 0), 5);
    CHECK_EQ_U(orr_set_class_first(set, 1), 3);
    CHECK_OK(orr_set_write_files(set, "d/out", NULL, 1, &err), &err);
    for (unsigned r = 0; r < 7; r++) {
        char from[32], to[32];
        snprintf(from, sizeof from, "d/p.%u.et", r);
        snprintf(to, sizeof to, "d/out.%u.et", r);
        orr_buf want = read_file(from);
        check_file(to, want.ptr, want.len);
        orr_buf_fini(&want);
    }
    orr_set_close(set);
}

/* Records that are equal in meaning but not in bytes must come back as they were. */
TEST(test_set__odd_encodings_come_back_as_they_were)
{
    static const struct {
        const char *bytes;
        size_t len;
    } ranks[] = {
        {"\x04\x08\x05\x18\x04", 5},     /* id 5 */
        {"\x04\x08\x06\x18\x04", 5},     /* shifted by one */
        {"\x84\x00\x08\x07\x18\x04", 6}, /* the length in two bytes */
        {"\x05\x08\x88\x00\x18\x04", 6}, /* the id in two bytes */
        {"\x04\x18\x04\x08\x09", 5},     /* the id behind the type */
        {"\x04\x08\x05\x18\x04", 5},         {"\x06\x08\x09\x08\x0a\x18\x04", 7}, /* two ids */
        {"\x06\x08\x09\x08\x0a\x18\x04", 7}, {"\x06\x08\x0a\x08\x0b\x18\x04", 7},
    };
    char name[32];
    remove_all("d");
    for (unsigned r = 0; r < 9; r++) {
        orr_buf b = {0};
        put_meta(&b);
        orr_buf_add(&b, ranks[r].bytes, ranks[r].len);
        snprintf(name, sizeof name, "d/p.%u.et", r);
        write_file(name, b.ptr, b.len);
        orr_buf_fini(&b);
    }
    for (unsigned threads = 1; threads <= 2; threads++) {
        open_set("d/p",
                 &(orr_set_options){.size = sizeof(orr_set_options),
                                    .threads = threads,
                                    .read = &(orr_read_options){.size = sizeof(orr_read_options),
                                                                .schema = ORR_SCHEMA_CURRENT}});
        CHECK_EQ_U(orr_set_class_of(set, 1), 0);
        CHECK_EQ_U(orr_set_class_of(set, 5), 0);
        CHECK_EQ_U(orr_set_class_of(set, 7), orr_set_class_of(set, 6));
        CHECK_OK(orr_set_save(set, "d/s.orr", NULL, &err), &err);
        orr_set_close(set);
        open_set("d/s.orr",
                 &(orr_set_options){.size = sizeof(orr_set_options), .threads = threads});
        CHECK_OK(orr_set_write_files(set, "d/out", NULL, threads, &err), &err);
        for (unsigned r = 0; r < 9; r++) {
            snprintf(name, sizeof name, "d/out.%u.et", r);
            orr_buf b = {0};
            put_meta(&b);
            orr_buf_add(&b, ranks[r].bytes, ranks[r].len);
            check_file(name, b.ptr, b.len);
            orr_buf_fini(&b);
        }
        orr_set_close(set);
    }
}

TEST(test_set__metadata_keeps_ranks_apart)
{
    orr_buf b = {0};
    remove_all("d");
    write_chain("d/p.0.et", 1, 1);
    PUT_RECORD(&b, "\x0a\x05"
                   "1.0.1");
    PUT_NODE(&b, 1);
    write_file("d/p.1.et", b.ptr, b.len);
    b.len = 0;
    PUT_NODE(&b, 1); /* without metadata */
    write_file("d/p.2.et", b.ptr, b.len);
    open_set("d", NULL);
    check_ranks(3, 3, (const uint32_t[]){0, 1, 2}, (const uint64_t[]){0, 0, 0});
    orr_set_close(set);
    orr_buf_fini(&b);
}

TEST(test_set__a_rank_that_cannot_be_read_fails_the_set_or_keeps_its_error)
{
    orr_buf b = chain(1, 3);
    remove_all("d");
    write_chain("d/p.0.et", 1, 3);
    write_file("d/p.1.et", b.ptr, b.len - 1);
    write_chain("d/p.2.et", 1, 3);
    write_file("d/p.3.et", b.ptr, b.len - 1); /* the same damage in the same batch */
    CHECK_EQ(symlink("nowhere", "d/p.4.et"), 0);
    write_chain("d/p.5.et", 7, 3);
    refuse_set("d", ORR_EINPUT, "d/p.1.et: byte ");
    open_set("d", &(orr_set_options){.size = sizeof(orr_set_options), .keep_going = true});
    CHECK_EQ_U(orr_set_rank_count(set), 6);
    CHECK_EQ_U(orr_set_class_count(set), 1);
    CHECK_EQ_U(orr_set_class_of(set, 1), ORR_NO_NODE);
    CHECK_EQ_U(orr_set_class_of(set, 5), 0);
    CHECK_EQ_U(orr_set_id_shift(set, 5), 6);
    CHECK_EQ_U(orr_set_class_ranks(set, 0), 3);
    CHECK(!orr_set_error(set, 0) && !orr_set_error(set, 5));
    for (uint32_t r = 1; r <= 4; r++) {
        if (r == 2)
            continue;
        char name[32];
        snprintf(name, sizeof name, "d/p.%u.et", r);
        const orr_error *e = orr_set_error(set, r);
        CHECK(e && e->code == (r == 4 ? ORR_EIO : ORR_EINPUT));
        CHECK_TEXT(e->where.path, name);
        CHECK_TEXT(orr_set_rank_path(set, r), name);
    }
    CHECK_CODE(orr_set_save(set, "d/s.orr", NULL, &err), ORR_EUSAGE, &err);
    CHECK_SAYS(&err, "rank 1 could not be read");
    CHECK(access("d/s.orr", F_OK) != 0);
    orr_set_close(set);
    orr_buf_fini(&b);
}

TEST(test_set__threads_do_not_change_the_result)
{
    char name[32];
    remove_all("d");
    for (unsigned r = 0; r < 50; r++) { /* several batches with any number of threads */
        snprintf(name, sizeof name, "d/p.%u.et", r);
        write_chain(name, r % 3 ? r * 10 : 1, 2 + r * r % 5);
    }
    uint32_t classes[50];
    uint64_t shifts[50];
    for (unsigned threads = 1; threads <= 4; threads++) {
        open_set("d/p", &(orr_set_options){.size = sizeof(orr_set_options), .threads = threads});
        CHECK_OK(orr_set_save(set, threads == 1 ? "d/one.orr" : "d/many.orr", NULL, &err), &err);
        for (uint32_t r = 0; r < 50; r++) {
            if (threads == 1) {
                classes[r] = orr_set_class_of(set, r);
                shifts[r] = orr_set_id_shift(set, r);
            }
            CHECK_EQ_U(orr_set_class_of(set, r), classes[r]);
            CHECK_EQ_U(orr_set_id_shift(set, r), shifts[r]);
        }
        CHECK_EQ_U(orr_set_class_count(set), 3); /* squares modulo 5 are 0, 1 and 4 */
        orr_set_close(set);
    }
    orr_buf one = read_file("d/one.orr");
    check_file("d/many.orr", one.ptr, one.len);
    orr_buf_fini(&one);
}

TEST(test_set__a_set_is_made_rank_by_rank)
{
    orr_trace *t = new_trace();
    CHECK_OK(orr_set_create(&set, &err), &err);
    CHECK_CODE(orr_set_add(set, t, &err), ORR_EUSAGE, &err); /* takes it, sealed or not */
    for (unsigned k = 0; k < 3; k++) {
        t = new_trace();
        ADD_NODE(t, 1 + 10 * k);
        ADD_NODE(t, 2 + 10 * k, 1 + 10 * k);
        if (k == 2)
            ADD_NODE(t, 99);
        seal(t);
        CHECK_OK(orr_set_add(set, t, &err), &err);
    }
    CHECK_OK(orr_set_add_rank(set, 1, 1000, &err), &err);
    CHECK_CODE(orr_set_add_rank(set, 2, 0, &err), ORR_EUSAGE, &err);
    check_ranks(4, 2, (const uint32_t[]){0, 0, 1, 1}, (const uint64_t[]){0, 10, 0, 1000});
    CHECK_TEXT(orr_set_rank_path(set, 3), "(new trace)");
    CHECK_OK(orr_set_write_files(
                 set, "made",
                 &(orr_write_options){.size = sizeof(orr_write_options), .id_shift = 5}, 2, &err),
             &err);
    orr_set_close(set);
    CHECK_OK(orr_trace_read("made.3.et", NULL, &t, &err), &err);
    CHECK_EQ_U(orr_trace_columns(t)->id[0], 21 + 1000 + 5);
    orr_trace_destroy(t);
    CHECK_CODE(orr_set_open("no/such", NULL, &set, NULL), ORR_EIO, NULL);
}

/* ---- .orr ---- */

/* The set of docs/format/orr.md: two classes, three ranks. */
static void save_small(const char *path, bool compress)
{
    orr_trace *t = new_trace();
    CHECK_OK(orr_set_create(&set, &err), &err);
    ADD_NODE(t, 1);
    seal(t);
    CHECK_OK(orr_set_add(set, t, &err), &err);
    t = new_trace();
    ADD_NODE(t, 1);
    ADD_NODE(t, 2, 1);
    seal(t);
    CHECK_OK(orr_set_add(set, t, &err), &err);
    CHECK_OK(orr_set_add_rank(set, 0, 16, &err), &err);
    CHECK_OK(orr_set_save(set, path,
                          &(orr_set_save_options){.size = sizeof(orr_set_save_options),
                                                  .compress = compress},
                          &err),
             &err);
    orr_set_close(set);
}

static bool is_small(const orr_set *s)
{
    if (orr_set_rank_count(s) != 3 || orr_set_class_count(s) != 2)
        return false;
    const orr_columns *a = orr_trace_columns(orr_set_trace(s, 0)),
                      *b = orr_trace_columns(orr_set_trace(s, 1));
    return orr_set_class_of(s, 0) == 0 && orr_set_class_of(s, 1) == 1 &&
           orr_set_class_of(s, 2) == 0 && orr_set_id_shift(s, 0) == 0 &&
           orr_set_id_shift(s, 1) == 0 && orr_set_id_shift(s, 2) == 16 && a->count == 1 &&
           b->count == 2 && a->id[0] == 1 && b->id[0] == 1 && b->id[1] == 2 && b->data_dep[0] == 0;
}

TEST(test_set__an_orr_file_is_what_the_format_says)
{
    static const struct {
        unsigned at, size;
        uint64_t value;
    } fields[] = {
        {8, 4, 1},
        {12, 4, 0}, /* version, features */
        {64, 8, 16},
        {72, 8, 16},
        {80, 8, 16}, /* class 0: place, stored, raw */
        {96, 4, 1},
        {100, 4, 2},
        {104, 4, 0},
        {108, 4, 0},
        {112, 4, 1}, /* nodes, ranks, first, packing, schema */
        {120, 8, 32},
        {128, 8, 27},
        {136, 8, 27}, /* class 1 */
        {152, 4, 2},
        {156, 4, 1},
        {160, 4, 1},
        {164, 4, 0},
        {168, 4, 1},
        {176, 4, 0},
        {184, 8, 0},
        {192, 4, 1},
        {200, 8, 0},
        {208, 4, 0},
        {216, 8, 16}, /* ranks */
        {224, 8, 64},
        {232, 8, 176},
        {240, 4, 2},
        {244, 4, 3},
        {256, 8, 280},
        {264, 8, 0}, /* trailer */
        {88, 8, 0x2b67bc5fb5aad66fu},
        {144, 8, 0x5b8538f18c230682u},
        {248, 8, 0x88a0de69f2a2ba6au}, /* hashes */
    };
    save_small("s.orr", false);
    orr_buf b = read_file("s.orr");
    CHECK_EQ_U(b.len, 280);
    CHECK_BYTES(b.ptr, "\x89ORR\r\n\x1a\n", 8);
    CHECK_BYTES(b.ptr + 16,
                "\x07\x0a\x05"
                "1.0.0"
                "\x07\x08\x01\x12\x01n\x18\x04",
                16);
    CHECK_BYTES(b.ptr + 32,
                "\x07\x0a\x05"
                "1.0.0"
                "\x07\x08\x01\x12\x01n\x18\x04"
                "\x0a\x08\x02\x12\x01n\x18\x04\x2a\x01\x01\0\0\0\0\0",
                32);
    CHECK_BYTES(b.ptr + 272, "ORR end\n", 8);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const uint64_t got = orr__load_le(b.ptr + fields[i].at, fields[i].size);
        if (got != fields[i].value)
            check_fail(__FILE__, __LINE__, "at byte %u: %" PRIu64 ", expected %" PRIu64,
                       fields[i].at, got, fields[i].value);
    }
    orr_buf_fini(&b);
}

TEST(test_set__saved_sets_read_back)
{
    static const char *const names[] = {"s.orr", "s.orr.gz", "s.orr.zst", "s.data"};
    for (unsigned k = 0; k < 8; k++) {
        save_small(names[k / 2], k % 2);
        open_set(names[k / 2], NULL);
        CHECK(is_small(set));
        CHECK_TEXT(orr_set_rank_path(set, 2), names[k / 2]);
        CHECK(orr_set_class_ranks(set, 0) == 2 && orr_set_class_ranks(set, 1) == 1 &&
              orr_set_class_first(set, 1) == 1);
        CHECK_OK(orr_set_save(set, names[k / 2], NULL, &err), &err); /* over the file it lies in */
        CHECK(is_small(set));
        CHECK_OK(orr_set_write_files(set, "out", NULL, 0, &err), &err);
        orr_set_close(set);
        orr_buf b = chain(17, 1);
        check_file("out.2.et", b.ptr, b.len);
        orr_buf_fini(&b);
    }
}

TEST(test_set__a_large_class_reads_back)
{
    /* Larger than what an output gathers and larger than what an input maps. */
    for (unsigned compress = 0; compress < 2; compress++)
        for (uint32_t count = 5000; count <= 60000; count += 11000) {
            orr_trace *t = random_trace(count, count, 50), *again;
            CHECK_OK(orr_trace_write(t, "t.et", NULL, &err), &err);
            CHECK_OK(orr_set_create(&set, &err), &err);
            CHECK_OK(orr_set_add(set, t, &err), &err);
            CHECK_OK(orr_set_save(set, "s.orr",
                                  &(orr_set_save_options){.size = sizeof(orr_set_save_options),
                                                          .compress = compress},
                                  &err),
                     &err);
            orr_set_close(set);
            uint64_t shift = 1;
            CHECK_OK(orr_set_read_rank("s.orr", 0, NULL, &again, &shift, &err), &err);
            CHECK_EQ_U(shift, 0);
            CHECK_OK(orr_trace_write(again, "u.et", NULL, &err), &err);
            orr_trace_destroy(again);
            orr_buf want = read_file("t.et");
            check_file("u.et", want.ptr, want.len);
            orr_buf_fini(&want);
        }
}

TEST(test_set__one_rank_is_read_without_the_others)
{
    for (unsigned compress = 0; compress < 2; compress++) {
        orr_trace *t;
        uint64_t shift;
        save_small("s.orr", compress);
        CHECK_OK(orr_set_read_rank("s.orr", 1, NULL, &t, &shift, &err), &err);
        CHECK(orr_trace_columns(t)->count == 2 && shift == 0);
        orr_trace_destroy(t);
        CHECK_OK(orr_set_read_rank("s.orr", 2, NULL, &t, &shift, &err), &err);
        CHECK(orr_trace_columns(t)->count == 1 && shift == 16);
        CHECK_OK(orr_trace_write(
                     t, "r.et",
                     &(orr_write_options){.size = sizeof(orr_write_options), .id_shift = shift},
                     &err),
                 &err);
        orr_trace_destroy(t);
        CHECK_OK(orr_set_read_rank("s.orr", 0, NULL, &t, NULL, &err), &err);
        orr_trace_destroy(t);
        CHECK_CODE(orr_set_read_rank("s.orr", 3, NULL, &t, &shift, &err), ORR_EUSAGE, &err);
        CHECK_SAYS(&err, "s.orr has 3 ranks: there is no rank 3");
        CHECK(t == NULL);
        CHECK_CODE(orr_set_read_rank("r.et", 0, NULL, &t, &shift, &err), ORR_EINPUT, &err);
        CHECK_SAYS(&err, "r.et: byte 0: not a .orr file");
        CHECK_CODE(orr_set_read_rank("none.orr", 0, NULL, &t, &shift, &err), ORR_EIO, &err);
    }
}

TEST(test_set__a_trace_of_nothing_survives)
{
    orr_trace *t;
    CHECK_OK(orr_set_create(&set, &err), &err);
    CHECK_OK(orr_trace_create(NULL, &t, &err), &err);
    seal(t);
    CHECK_OK(orr_set_add(set, t, &err), &err);
    CHECK_OK(orr_set_save(set, "s.orr", NULL, &err), &err);
    orr_set_close(set);
    open_set("s.orr", NULL);
    CHECK_EQ_U(orr_trace_columns(orr_set_trace(set, 0))->count, 0);
    orr_set_close(set);
    CHECK_OK(orr_set_create(&set, &err), &err); /* and so does a set of nothing */
    CHECK_OK(orr_set_save(set, "s.orr", NULL, &err), &err);
    orr_set_close(set);
    open_set("s.orr", NULL);
    CHECK(orr_set_rank_count(set) == 0 && orr_set_class_count(set) == 0);
    orr_set_close(set);
}

/* Whatever bit is turned over: an error with a place, or the same set (padding is not looked
 * at). */
TEST(test_set__every_damaged_bit_is_an_error_or_harmless)
{
    for (unsigned compress = 0; compress < 2; compress++) {
        unsigned accepted = 0;
        save_small("s.orr", compress);
        orr_buf b = read_file("s.orr");
        for (size_t bit = 0; bit < 8 * b.len; bit++) {
            orr_set *s;
            orr_trace *t;
            b.ptr[bit / 8] ^= (uint8_t)(1 << bit % 8);
            write_file("bad.orr", b.ptr, b.len);
            if (orr_set_open("bad.orr", NULL, &s, &err) == ORR_OK) {
                CHECK(is_small(s));
                accepted++;
                orr_set_close(s);
            } else {
                CHECK_EQ(err.code, ORR_EINPUT);
                CHECK_TEXT(err.where.path, "bad.orr");
                CHECK(err.where.byte <= b.len);
            }
            if (orr_set_read_rank("bad.orr", 1, NULL, &t, NULL, &err) == ORR_OK) {
                CHECK(orr_trace_columns(t)->count == 2 && orr_trace_columns(t)->id[1] == 2);
                orr_trace_destroy(t);
            } else {
                CHECK_EQ(err.code, ORR_EINPUT);
            }
            b.ptr[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        /* Plain, 5 bytes of padding follow the second class.  Packed, up to 7 bytes follow each. */
        CHECK(compress ? accepted <= 8 * 14 : accepted == 8 * 5);
        orr_buf_fini(&b);
    }
}

TEST(test_set__a_cut_orr_file_is_refused)
{
    for (unsigned compress = 0; compress < 2; compress++) {
        save_small("s.orr", compress);
        orr_buf b = read_file("s.orr");
        for (size_t n = 8; n < b.len; n++) {
            write_file("bad.orr", b.ptr, n);
            refuse_set("bad.orr", ORR_EINPUT, "bad.orr: byte ");
        }
        orr_buf_add(&b, "x", 1);
        write_file("bad.orr", b.ptr, b.len);
        refuse_set("bad.orr", ORR_EINPUT, "the end mark is missing");
        orr_buf_fini(&b);
    }
}

static void store(uint8_t *p, unsigned n, uint64_t v)
{
    for (unsigned i = 0; i < n; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

/* Files that are wrong although all hashes are right. */
TEST(test_set__tables_are_not_believed)
{
    static const struct {
        unsigned at, size;
        uint64_t value;
        const char *words;
    } lies[] = {
        {64, 8, 8, "a class lies outside the file"},
        {64, 8, UINT64_MAX - 3, "a class lies outside the file"},
        {72, 8, 1000, "a class lies outside the file"},
        {72, 8, UINT64_MAX, "a class lies outside the file"},
        {80, 8, 17, "two different lengths"},
        {96, 4, 2, "as many nodes as the table says"},
        {108, 4, 1, "a compressed class is damaged"},
        {108, 4, 2, "a packing or schema"},
        {112, 4, 99, "a packing or schema"},
        {176, 4, 2, "a rank names a class that is not there"},
        {176, 4, UINT32_MAX, "a rank names a class that is not there"},
        {224, 8, 0, "the tables do not fit the file"},
        {224, 8, UINT64_MAX - 7, "the tables do not fit the file"},
        {232, 8, 0, "the tables do not fit the file"},
        {240, 4, UINT32_MAX, "the tables do not fit the file"},
        {244, 4, UINT32_MAX, "the tables do not fit the file"},
        {256, 8, 0, "not as long as it says"},
        {264, 8, 4, "a feature of the .orr format"},
        {264, 8, 1, "the features at the end"},
        {12, 4, 4, "a feature of the .orr format"},
        {8, 4, 2, "a version of the .orr format"},
    };
    save_small("s.orr", false);
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        orr_buf b = read_file("s.orr");
        store(b.ptr + lies[i].at, lies[i].size, lies[i].value);
        store(b.ptr + 248, 8, orr_hash_bytes(b.ptr + 64, 224 - 64, 0));
        write_file("bad.orr", b.ptr, b.len);
        refuse_set("bad.orr", ORR_EINPUT, lies[i].words);
        orr_buf_fini(&b);
    }
}

TEST(test_set__saving_fails_without_leaving_a_file)
{
    orr_trace *t = new_trace();
    CHECK_OK(orr_set_create(&set, &err), &err);
    ADD_NODE(t, 1);
    seal(t);
    CHECK_OK(orr_set_add(set, t, &err), &err);
    CHECK_CODE(orr_set_save(set, "no/such.orr", NULL, &err), ORR_EIO, &err);
    CHECK_CODE(orr_set_save(set, "/dev/full", NULL, &err), ORR_EIO, &err);
    CHECK_CODE(orr_set_write_files(set, "no/such", NULL, 1, &err), ORR_EIO, &err);
    CHECK_SAYS(&err, "no/such.0.et");
    orr_set_close(set);
}

/* Rank 2 cannot be written, since a folder has its name. */
TEST(test_set__a_set_that_cannot_be_written_whole_leaves_the_folder_as_it_was)
{
    orr_buf b;
    const int stopped = 1;
    CHECK_OK(orr_set_create(&set, &err), &err);
    for (int r = 0; r < 4; r++) {
        orr_trace *t = new_trace();
        ADD_NODE(t, 1 + (uint64_t)r);
        seal(t);
        CHECK_OK(orr_set_add(set, t, &err), &err);
    }
    CHECK(mkdir("whole", 0777) == 0);
    write_file("whole/out.1.et", "old", 3);
    CHECK(mkdir("whole/out.2.et", 0777) == 0);
    for (unsigned threads = 1; threads <= 4; threads += 3) {
        CHECK_CODE(orr_set_write_files(set, "whole/out", NULL, threads, &err), ORR_EIO, &err);
        CHECK_SAYS(&err, "whole/out.2.et");
        CHECK(access("whole/out.0.et", F_OK) != 0 && access("whole/out.3.et", F_OK) != 0);
        b = read_file("whole/out.1.et");
        CHECK(b.len == 3 && memcmp(b.ptr, "old", 3) == 0);
        orr_buf_fini(&b);
    }
    CHECK(rmdir("whole/out.2.et") == 0);
    orr_stop_when(&stopped);
    CHECK(orr_set_write_files(set, "whole/out", NULL, 1, &err) != ORR_OK);
    orr_stop_when(NULL);
    CHECK(access("whole/out.0.et", F_OK) != 0 && access("whole/out.3.et", F_OK) != 0);
    CHECK_OK(orr_set_write_files(set, "whole/out", NULL, 2, &err), &err);
    CHECK(access("whole/out.0.et", F_OK) == 0 && access("whole/out.3.et", F_OK) == 0);
    b = read_file("whole/out.1.et");
    CHECK(b.len > 3);
    orr_buf_fini(&b);
    orr_set_close(set);
}

/* More ranks than the process may have open files: in batches, and the limit is as it was. */
TEST(test_set__more_ranks_than_open_files_are_written)
{
    enum { RANKS = 300, FILES = 64 };
    struct rlimit before, few, after;
    char path[64];
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK_OK(orr_set_create(&set, &err), &err);
    for (uint64_t r = 0; r < RANKS; r++) {
        orr_trace *t = new_trace();
        ADD_NODE(t, 1 + r);
        seal(t);
        CHECK_OK(orr_set_add(set, t, &err), &err);
    }
    few = (struct rlimit){.rlim_cur = FILES, .rlim_max = before.rlim_max};
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    CHECK_OK(orr_set_write_files(set, "many", NULL, 2, &err), &err);
    CHECK(getrlimit(RLIMIT_NOFILE, &after) == 0 && after.rlim_cur == FILES);
    for (unsigned r = 0; r < RANKS; r++) {
        snprintf(path, sizeof path, "many.%u.et", r);
        CHECK(unlink(path) == 0);
    }
    /* A child may not raise its limit: it takes batches. */
    const pid_t child = fork();
    if (child == 0) {
        few.rlim_max = FILES;
        _exit(setrlimit(RLIMIT_NOFILE, &few) == 0
                  ? orr_set_write_files(set, "many", NULL, 1, &err) != ORR_OK
                  : 0);
    }
    int status = 1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    for (unsigned r = 0; r < RANKS; r++) {
        snprintf(path, sizeof path, "many.%u.et", r);
        CHECK(unlink(path) == 0);
    }
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
    orr_set_close(set);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_set__one_file_is_a_set_of_one_rank),
        RUN(test_set__a_prefix_finds_its_ranks_in_number_order),
        RUN(test_set__a_prefix_without_a_folder_is_looked_for_here),
        RUN(test_set__a_directory_is_the_set_it_holds),
        RUN(test_set__a_missing_or_double_rank_is_named),
        RUN(test_set__numbers_too_long_for_a_rank_are_names),
        RUN(test_set__ranks_alike_are_stored_once),
        RUN(test_set__odd_encodings_come_back_as_they_were),
        RUN(test_set__metadata_keeps_ranks_apart),
        RUN(test_set__a_rank_that_cannot_be_read_fails_the_set_or_keeps_its_error),
        RUN(test_set__threads_do_not_change_the_result),
        RUN(test_set__a_set_is_made_rank_by_rank),
        RUN(test_set__an_orr_file_is_what_the_format_says),
        RUN(test_set__saved_sets_read_back),
        RUN(test_set__a_large_class_reads_back),
        RUN(test_set__one_rank_is_read_without_the_others),
        RUN(test_set__a_trace_of_nothing_survives),
        RUN(test_set__every_damaged_bit_is_an_error_or_harmless),
        RUN(test_set__a_cut_orr_file_is_refused),
        RUN(test_set__tables_are_not_believed),
        RUN(test_set__saving_fails_without_leaving_a_file),
        RUN(test_set__a_set_that_cannot_be_written_whole_leaves_the_folder_as_it_was),
        RUN(test_set__more_ranks_than_open_files_are_written),
    };
    return RUN_ALL(tests);
}
