/* SPDX-License-Identifier: Apache-2.0 */
/* test_compat.c - the table of replaced programs: what is listed is found, what is not is an error
 * that lists the rest. */
#include "check.h"

#include <orrery/lab/compat.h>

TEST(test_compat__what_is_listed_is_found)
{
    orr_error err;
    for (int part = 0; part < ORR_RULES_PARTS; part++) {
        const orr_compat *row, *found;
        for (size_t i = 0; (row = orr_compat_at((orr_compat_part)part, i)) != NULL; i++) {
            CHECK_OK(orr_compat_find((orr_compat_part)part, row->name, &found, &err), &err);
            CHECK(found == row);
            CHECK(row->program[0]);
        }
        row = orr_compat_at((orr_compat_part)part, 0);
        CHECK(orr_compat_find((orr_compat_part)part, NULL, &found, &err) ==
              (row ? ORR_OK : ORR_EUSAGE));
        CHECK(found == row);
    }
}

TEST(test_compat__an_unknown_name_lists_the_others)
{
    orr_error err;
    for (int part = 0; part < ORR_RULES_PARTS; part++) {
        const orr_compat *row = orr_compat_at((orr_compat_part)part, 0), *found;
        char text[600];
        CHECK(orr_compat_find((orr_compat_part)part, "nobody", &found, &err) == ORR_EUSAGE);
        CHECK(!found);
        orr_error_text(&err, text, sizeof text);
        CHECK(strstr(text, "nobody is not built in"));
        CHECK(strstr(text, row ? row->name : "none"));
    }
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_compat__what_is_listed_is_found),
        RUN(test_compat__an_unknown_name_lists_the_others),
    };
    return RUN_ALL(tests);
}
