/* SPDX-License-Identifier: Apache-2.0 */
#include <orrery/version.h>

const char *orr_version(void)
{
    return ORR_VERSION;
}
