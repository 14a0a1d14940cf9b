/* SPDX-License-Identifier: Apache-2.0 */
/* late_library.c - see late_library.h. */
#include "late_library.h"

#include <dlfcn.h>
#include <string.h>

bool orr_late_load(
    const char *library, const char *const *names, size_t count, void *first, const char **why)
{
    void *const loaded = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
    bool ok = loaded != NULL;
    for (size_t i = 0; ok && i < count; i++) {
        void *const at = dlsym(loaded, names[i]);
        ok = at != NULL;
        memcpy((char *)first + i * sizeof at, &at, sizeof at);
    }
    *why = ok ? NULL : dlerror();
    return ok;
}
