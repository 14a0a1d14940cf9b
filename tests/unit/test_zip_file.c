/* SPDX-License-Identifier: Apache-2.0 */
/* test_zip_file.c - archives as every archiver writes them are read; every lie in one is told, with
 * its byte. */
#include "check.h"
#include "files.h"
#include "zip_make.h"

#include "base/formats/zip_file.h"
#include "base/text/text.h"

static orr_error err;

enum { RECORD = 46, LOCAL = 30, END = 22 };

static const char text[] = "all the world's a stage, and all the men and women merely players";

static void check_entry(const orr_zip *z, size_t i, const zip_item *it)
{
    const orr_zip_entry *e = orr_zip_entry_at(z, i);
    orr_buf room = {0};
    orr_span all;
    CHECK(orr_str_is(e->name, it->name));
    CHECK_OK(orr_zip_read(z, e, 1 << 20, &room, &all, &err), &err);
    CHECK_EQ_U(all.len, it->len);
    CHECK_BYTES(all.ptr, it->bytes, it->len);
    orr_buf_fini(&room);
}

/* A copy that ends where its memory ends, so that a byte read too far is seen by sanitizers. */
static orr_span tight(const orr_buf *b)
{
    uint8_t *p = malloc(b->len ? b->len : 1);
    CHECK(p != NULL);
    if (b->len)
        memcpy(p, b->ptr, b->len);
    return (orr_span){p, b->len};
}

static void check_archive(zip_item *items, size_t count, bool is_zip64)
{
    orr_buf b = zip_make(items, count, is_zip64);
    const orr_span bytes = tight(&b);
    orr_zip *z;
    CHECK_OK(orr_zip_open(bytes, "a.zip", &z, &err), &err);
    CHECK_EQ_U(orr_zip_count(z), count);
    for (size_t i = 0; i < count; i++)
        check_entry(z, i, &items[i]);
    orr_zip_close(z);
    free((void *)(uintptr_t)bytes.ptr);
    orr_buf_fini(&b);
}

TEST(test_zip_file__every_way_of_writing_is_read)
{
    for (unsigned way = 0; way < 16; way++) {
        zip_item items[] = {{.name = "a/b.txt", .bytes = text, .len = sizeof text},
                            {.name = "a/", .bytes = "", .len = 0},
                            {.name = "empty", .bytes = "", .len = 0},
                            {.name = "z\xc3\xa4hne", .bytes = "12345", .len = 5}};
        for (size_t i = 0; i < 4; i++) {
            items[i].is_deflated = way & 1 && i != 1;
            items[i].has_descriptor = way & 2;
            items[i].is_zip64 = way & 4;
        }
        check_archive(items, 4, way & 8);
    }
    check_archive(NULL, 0, false);
}

TEST(test_zip_file__long_files_unpack_in_pieces)
{
    const size_t len = 3 << 20;
    char *bytes = malloc(len);
    CHECK(bytes != NULL);
    uint32_t x = 1;
    for (size_t i = 0; i < len; i++) {
        x = x * 1664525 + 1013904223;
        bytes[i] = (char)('a' + (x >> 28));
    }
    zip_item item = {.name = "long", .bytes = bytes, .len = len, .is_deflated = true};
    orr_buf b = zip_make(&item, 1, false), room = {0};
    orr_zip *z;
    orr_span all;
    CHECK_OK(orr_zip_open((orr_span){b.ptr, b.len}, "a.zip", &z, &err), &err);
    CHECK_OK(orr_zip_read(z, orr_zip_entry_at(z, 0), len, &room, &all, &err), &err);
    CHECK(all.len == len && memcmp(all.ptr, bytes, len) == 0);
    orr_buf_fini(&room);
    room = (orr_buf){0};
    CHECK_CODE(orr_zip_read(z, orr_zip_entry_at(z, 0), len - 1, &room, &all, &err), ORR_EINPUT,
               &err);
    CHECK_SAYS(&err, "3145728 bytes; 3145727 at most are read");
    orr_zip_close(z);
    orr_buf_fini(&room);
    orr_buf_fini(&b);
    free(bytes);
}

TEST(test_zip_file__a_stored_file_is_not_copied)
{
    zip_item item = {.name = "a", .bytes = text, .len = sizeof text};
    orr_buf b = zip_make(&item, 1, false), room = {0};
    orr_zip *z;
    orr_span all;
    CHECK_OK(orr_zip_open((orr_span){b.ptr, b.len}, "a.zip", &z, &err), &err);
    CHECK_OK(orr_zip_read(z, orr_zip_entry_at(z, 0), 1 << 20, &room, &all, &err), &err);
    CHECK(all.ptr == b.ptr + item.data && room.ptr == NULL);
    orr_zip_close(z);
    orr_buf_fini(&b);
}

TEST(test_zip_file__a_comment_at_the_end_is_passed_over)
{
    /* the comment has the mark of an end record in it, with a length that does not lead to the
     * end */
    const char comment[] = "x PK\5\6 0123456789abcdefghi";
    zip_item item = {.name = "a", .bytes = text, .len = sizeof text};
    orr_buf b = {0};
    orr_zip *z;
    zip_local(&b, &item);
    const size_t start = b.len;
    zip_record(&b, &item);
    zip_end(&b, start, 1, false, comment);
    CHECK_OK(orr_zip_open((orr_span){b.ptr, b.len}, "a.zip", &z, &err), &err);
    check_entry(z, 0, &item);
    orr_zip_close(z);
    orr_buf_fini(&b);
}

TEST(test_zip_file__known_by_its_first_bytes)
{
    zip_item item = {.name = "a", .bytes = text, .len = sizeof text};
    orr_buf b = zip_make(&item, 1, false);
    CHECK(orr_zip_is((orr_span){b.ptr, b.len}) && !orr_zip_is((orr_span){b.ptr, 3}));
    CHECK(!orr_zip_is((orr_span){(const uint8_t *)text, sizeof text}));
    orr_buf_fini(&b);
}

/* ---- lies ---- */

/* Opens and, when that succeeds, reads all files; the words of the first refusal are left in
 * err. */
static orr_code open_and_read(const orr_buf *b, uint64_t most)
{
    const orr_span bytes = tight(b);
    orr_zip *z;
    orr_code code = orr_zip_open(bytes, "a.zip", &z, &err);
    for (size_t i = 0; !code && i < orr_zip_count(z); i++) {
        orr_buf room = {0};
        orr_span all;
        code = orr_zip_read(z, orr_zip_entry_at(z, i), most, &room, &all, &err);
        orr_buf_fini(&room);
    }
    orr_zip_close(z);
    free((void *)(uintptr_t)bytes.ptr);
    return code;
}

/* Three files, the second deflated, the third with sizes behind its data; a patch of n bytes; the
 * refusal's words. */
typedef enum lie_base {
    AT_RECORD,
    AT_LOCAL,
    AT_DATA,
    AT_BEHIND,
    AT_END,
    AT_END64,
    AT_LOCATOR
} lie_base;

typedef struct lie {
    lie_base base;
    size_t item, offset;
    uint64_t value;
    size_t n;
    const char *words;
} lie;

static size_t lie_at(const lie *l, const zip_item *items, const orr_buf *b)
{
    const zip_item *it = &items[l->item];
    switch (l->base) {
    case AT_RECORD:
        return it->record + l->offset;
    case AT_LOCAL:
        return it->local + l->offset;
    case AT_DATA:
        return it->data + l->offset;
    case AT_BEHIND:
        return it->data + it->packed + l->offset;
    case AT_END:
        return b->len - END + l->offset;
    case AT_END64:
        return b->len - END - 20 - 56 + l->offset;
    default:
        return b->len - END - 20 + l->offset;
    }
}

static void check_lie(const lie *l, bool is_zip64)
{
    zip_item items[] = {
        {.name = "first/one", .bytes = text, .len = sizeof text},
        {.name = "second", .bytes = text, .len = sizeof text, .is_deflated = true},
        {.name = "third", .bytes = text, .len = sizeof text, .has_descriptor = true}};
    orr_buf b = zip_make(items, 3, is_zip64);
    zip_patch(&b, lie_at(l, items, &b), l->value, l->n);
    const orr_code code = open_and_read(&b, 1 << 20);
    if (code != ORR_EINPUT || !strstr(err.message, l->words))
        print_message("expected: %s\n", l->words);
    CHECK_EQ(code, ORR_EINPUT);
    CHECK_SAYS(&err, l->words);
    CHECK(err.where.byte <= b.len && strcmp(err.where.path, "a.zip") == 0);
    orr_buf_fini(&b);
}

static const lie lies[] = {
    {AT_RECORD, 0, 0, 0, 4, "no record where one should begin"},
    {AT_RECORD, 0, 8, 0x801, 2, "another method than the directory"},
    {AT_RECORD, 0, 10, 8, 2, "another method than the directory"},
    {AT_RECORD, 0, 16, 1, 4, "another size than the directory"},
    {AT_RECORD, 0, 20, 1, 4, "another size than the directory"},
    {AT_RECORD, 0, 24, 1, 4, "another size than the directory"},
    {AT_RECORD, 2, 24, 1, 4, "it is stored uncompressed, but its two sizes differ"},
    {AT_RECORD, 2, 20, 0x7fffffff, 4, "extends into the directory"},
    {AT_RECORD, 0, 28, 0xffff, 2, "ends inside a record"},
    {AT_RECORD, 2, 30, 1, 2, "ends inside a record"},
    {AT_RECORD, 2, 32, 1, 2, "ends inside a record"},
    {AT_RECORD, 0, 42, 1, 4, "does not lead to its header"},
    {AT_RECORD, 0, 42, 0xfffffffe, 4, "does not lead to its header"},
    {AT_RECORD, 0, 42, 0xffffffff, 4, "zip64 field of the archive's directory is too short"},
    {AT_RECORD, 0, RECORD, 'F', 1, "another name than the directory"},
    {AT_RECORD, 0, RECORD, '/', 1, "has an absolute path as its name"},
    {AT_RECORD, 0, RECORD + 1, ':', 1, "has an absolute path as its name"},
    {AT_RECORD, 0, RECORD + 1, '\\', 1, "has a backslash in its name"},
    {AT_RECORD, 0, RECORD + 1, 0, 1, "has a control character in its name"},
    {AT_RECORD, 0, RECORD + 1, 0x1b, 1, "has a control character in its name"},
    {AT_RECORD, 0, RECORD + 1, 0xff, 1, "has a name that is not UTF-8"},
    {AT_RECORD, 0, RECORD + 4, '/', 1, "has an empty part in its name"},
    {AT_RECORD, 0, RECORD, 0x2f2e2e, 3, "has a part '.' or '..' in its name"},
    {AT_RECORD, 0, RECORD, 0x2f2e, 2, "has a part '.' or '..' in its name"},
    {AT_RECORD, 0, RECORD + 2, 0x2f2e2e2f, 4, "has a part '.' or '..' in its name"},
    {AT_LOCAL, 0, 0, 0, 4, "does not lead to its header"},
    {AT_LOCAL, 0, 6, 0x801, 2, "another method than the directory"},
    {AT_LOCAL, 0, 8, 8, 2, "another method than the directory"},
    {AT_LOCAL, 0, 14, 7, 4, "another size than the directory"},
    {AT_LOCAL, 0, 22, 7, 4, "another size than the directory"},
    {AT_LOCAL, 0, 26, 0xffff, 2, "the header is cut short"},
    {AT_LOCAL, 0, LOCAL, 'g', 1, "another name than the directory"},
    {AT_DATA, 0, 0, 'A', 1, "its checksum does not match the directory's"},
    {AT_DATA, 1, 0, 0xffff, 2, "the compressed data is damaged"},
    {AT_BEHIND, 2, 4, 1, 4, "the sizes after its data differ from the directory's"},
    {AT_BEHIND, 2, 8, 1, 4, "the sizes after its data differ from the directory's"},
    {AT_BEHIND, 2, 12, 1, 4, "the sizes after its data differ from the directory's"},
    {AT_END, 0, 0, 0, 4, "has no end record"},
    {AT_END, 0, 4, 1, 2, "several parts"},
    {AT_END, 0, 8, 2, 2, "several parts"},
    {AT_END, 0, 8, 0x00020002, 4, "more entries than it says"},
    {AT_END, 0, 8, 0x00090009, 4, "more entries than its directory has room for"},
    {AT_END, 0, 12, 9999, 4,
     "the archive's directory is beyond its end: the file is truncated or damaged"},
    {AT_END, 0, 12, 100, 4, "there is data after"},
    {AT_END, 0, 16, 0xffffff, 4,
     "the archive's directory is beyond its end: the file is truncated or damaged"},
    {AT_END, 0, 20, 1, 2, "has no end record"},
};

static const lie lies64[] = {
    {AT_LOCATOR, 0, 4, 1, 4, "several parts"},
    {AT_LOCATOR, 0, 16, 2, 4, "several parts"},
    {AT_LOCATOR, 0, 8, UINT64_MAX, 8, "does not lead to a zip64 end record"},
    {AT_LOCATOR, 0, 8, 0, 8, "does not lead to a zip64 end record"},
    {AT_END64, 0, 4, 45, 8, "another size than it says"},
    {AT_END64, 0, 16, 1, 4, "several parts"},
    {AT_END64, 0, 24, 4, 8, "several parts"},
    {AT_END64, 0, 40, UINT64_MAX, 8,
     "the archive's directory is beyond its end: the file is truncated or damaged"},
    {AT_END64, 0, 48, UINT64_MAX, 8,
     "the archive's directory is beyond its end: the file is truncated or damaged"},
    {AT_END64, 0, 40, 1, 8, "there is data after"},
    {AT_END, 0, 12, 1, 4, "contradict each other"},
    {AT_END, 0, 16, 1, 4, "contradict each other"},
    {AT_END, 0, 8, 0x00010001, 4, "contradict each other"},
};

TEST(test_zip_file__every_lie_is_told_with_its_byte)
{
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++)
        check_lie(&lies[i], false);
    for (size_t i = 0; i < sizeof lies64 / sizeof *lies64; i++)
        check_lie(&lies64[i], true);
}

/* A byte cut from the end, or one more: never read as if nothing were. */
TEST(test_zip_file__a_cut_anywhere_is_told)
{
    for (int is_zip64 = 0; is_zip64 < 2; is_zip64++) {
        zip_item items[] = {{.name = "a", .bytes = text, .len = sizeof text, .is_zip64 = is_zip64},
                            {.name = "b", .bytes = text, .len = sizeof text, .is_deflated = true}};
        orr_buf b = zip_make(items, 2, is_zip64);
        const size_t whole = b.len;
        for (b.len = 0; b.len < whole; b.len++)
            CHECK_EQ(open_and_read(&b, 1 << 20), ORR_EINPUT);
        orr_buf_byte(&b, 0);
        CHECK_EQ(open_and_read(&b, 1 << 20), ORR_EINPUT);
        orr_buf_fini(&b);
    }
}

/* Every single byte changed: read rightly, or refused. */
TEST(test_zip_file__a_changed_byte_never_changes_a_file)
{
    zip_item items[] = {{.name = "a", .bytes = text, .len = sizeof text, .has_descriptor = true},
                        {.name = "b", .bytes = text, .len = sizeof text, .is_deflated = true}};
    orr_buf b = zip_make(items, 2, false);
    for (size_t i = 0; i < b.len; i++) {
        b.ptr[i] ^= 0x41;
        orr_zip *z;
        const orr_code code = orr_zip_open((orr_span){b.ptr, b.len}, "a.zip", &z, &err);
        for (size_t k = 0; !code && k < orr_zip_count(z); k++) {
            orr_buf room = {0};
            orr_span all;
            if (orr_zip_read(z, orr_zip_entry_at(z, k), 1 << 20, &room, &all, &err) == ORR_OK)
                CHECK(all.len == sizeof text && memcmp(all.ptr, text, all.len) == 0);
            orr_buf_fini(&room);
        }
        orr_zip_close(z);
        b.ptr[i] ^= 0x41;
    }
    orr_buf_fini(&b);
}

TEST(test_zip_file__two_files_of_one_name_are_refused)
{
    zip_item items[] = {{.name = "a", .bytes = text, .len = 3},
                        {.name = "a", .bytes = text, .len = 4}};
    orr_buf b = zip_make(items, 2, false);
    CHECK_EQ(open_and_read(&b, 100), ORR_EINPUT);
    CHECK_SAYS(&err, "two files of this name");
    CHECK_EQ_U(err.where.byte, items[1].record);
    orr_buf_fini(&b);
}

/* The second file lies, with its header, in the data of the first, as in archives that unpack to
 * petabytes. */
TEST(test_zip_file__files_in_files_are_refused)
{
    orr_buf inner = {0};
    zip_item items[] = {{.name = "outer"}, {.name = "inner", .bytes = text, .len = sizeof text}};
    zip_local(&inner, &items[1]);
    items[0].bytes = inner.ptr;
    items[0].len = inner.len;
    orr_buf b = {0};
    zip_local(&b, &items[0]);
    items[1].local = items[0].data;
    const size_t start = b.len;
    zip_record(&b, &items[0]);
    zip_record(&b, &items[1]);
    zip_end(&b, start, 2, false, "");
    CHECK_EQ(open_and_read(&b, 1000), ORR_EINPUT);
    CHECK_SAYS(&err, "'inner' in the archive: it overlaps another file");
    CHECK_EQ_U(err.where.byte, items[0].data);
    orr_buf_fini(&inner);
    orr_buf_fini(&b);
}

TEST(test_zip_file__encrypted_and_unknown_methods_are_named)
{
    static const struct {
        uint64_t flags, method;
        const char *words;
    } cases[] = {{0x801, 0, "it is encrypted"},
                 {0x840, 0, "it is encrypted"},
                 {0x2800, 0, "it is encrypted"},
                 {0x800, 12, "compressed by method 12"},
                 {0x800, 99, "compressed by method 99"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        zip_item item = {.name = "a", .bytes = text, .len = sizeof text};
        orr_buf b = zip_make(&item, 1, false);
        zip_patch(&b, item.record + 8, cases[i].flags | cases[i].method << 16, 4);
        zip_patch(&b, item.local + 6, cases[i].flags | cases[i].method << 16, 4);
        CHECK_EQ(open_and_read(&b, 1000), ORR_EINPUT);
        CHECK_SAYS(&err, cases[i].words);
        orr_buf_fini(&b);
    }
}

/* ---- bombs ---- */

/* A deflated file of `len` zeros, and a directory that says `said`. */
static orr_buf make_zeros(size_t len, uint64_t said)
{
    void *zeros = calloc(len, 1);
    CHECK(zeros != NULL);
    zip_item item = {.name = "zeros", .bytes = zeros, .len = len, .is_deflated = true};
    orr_buf b = zip_make(&item, 1, false);
    zip_patch(&b, item.record + 24, said, 4);
    zip_patch(&b, item.local + 22, said, 4);
    free(zeros);
    return b;
}

TEST(test_zip_file__bombs_are_refused_while_they_unpack)
{
    orr_buf b = make_zeros(64 << 20, 64 << 20);
    CHECK_EQ(open_and_read(&b, 1 << 30), ORR_EINPUT);
    CHECK_SAYS(&err, "more than 512 times its size");
    CHECK(err.where.byte < 8192); /* after a megabyte or so: some 1,030 bytes in */
    CHECK_EQ(open_and_read(&b, 1 << 20), ORR_EINPUT);
    CHECK_SAYS(&err, "67108864 bytes; 1048576 at most are read");
    orr_buf_fini(&b);
    b = make_zeros(1 << 20, 1 << 20); /* a megabyte harms nobody */
    CHECK_EQ(open_and_read(&b, 1 << 20), ORR_OK);
    orr_buf_fini(&b);
    b = make_zeros(600000, 5);
    CHECK_EQ(open_and_read(&b, 1 << 20), ORR_EINPUT);
    CHECK_SAYS(&err, "more bytes than the directory says");
    orr_buf_fini(&b);
    b = make_zeros(600000, 600001);
    CHECK_EQ(open_and_read(&b, 1 << 20), ORR_EINPUT);
    CHECK_SAYS(&err, "fewer bytes than the directory says");
    orr_buf_fini(&b);
}

/* The compressed data ends early, or something follows it. */
TEST(test_zip_file__compressed_data_fills_its_place)
{
    zip_item item = {.name = "a", .bytes = text, .len = sizeof text, .is_deflated = true};
    orr_buf b = {0};
    zip_local(&b, &item);
    orr_buf_byte(&b, 'x');
    item.packed++;
    zip_patch(&b, item.local + 18, item.packed, 4);
    const size_t start = b.len;
    zip_record(&b, &item);
    zip_end(&b, start, 1, false, "");
    CHECK_EQ(open_and_read(&b, 1000), ORR_EINPUT);
    CHECK_SAYS(&err, "bytes follow the end of its compressed data");
    zip_patch(&b, item.local + 18, item.packed - 2, 4);
    zip_patch(&b, item.record + 20, item.packed - 2, 4);
    CHECK_EQ(open_and_read(&b, 1000), ORR_EINPUT);
    CHECK_SAYS(&err, "the compressed data is cut short");
    orr_buf_fini(&b);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_zip_file__every_way_of_writing_is_read),
        RUN(test_zip_file__long_files_unpack_in_pieces),
        RUN(test_zip_file__a_stored_file_is_not_copied),
        RUN(test_zip_file__a_comment_at_the_end_is_passed_over),
        RUN(test_zip_file__known_by_its_first_bytes),
        RUN(test_zip_file__every_lie_is_told_with_its_byte),
        RUN(test_zip_file__a_cut_anywhere_is_told),
        RUN(test_zip_file__a_changed_byte_never_changes_a_file),
        RUN(test_zip_file__two_files_of_one_name_are_refused),
        RUN(test_zip_file__files_in_files_are_refused),
        RUN(test_zip_file__encrypted_and_unknown_methods_are_named),
        RUN(test_zip_file__bombs_are_refused_while_they_unpack),
        RUN(test_zip_file__compressed_data_fills_its_place),
    };
    return RUN_ALL(tests);
}
