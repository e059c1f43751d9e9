/* The structs of the header as a C compiler lays them out, against what the library says of itself. */
#include "tap.h"
#include <stddef.h>
#include "layout.h"

int main(void)
{
    size_t i, field;
    uint32_t index;
    const size_t count = sizeof expected / sizeof expected[0];
    STATUS(byway_abi_version(), BYWAY_ABI_VERSION, "the header's ABI is the library's");
    OK(byway_version_number() == BYWAY_VERSION_NUMBER, "the header's version number is the library's");
    OK(!strcmp(byway_version(), BYWAY_VERSION_STRING), "the header's version text is the library's");
    OK(BYWAY_VERSION_NUMBER == ((BYWAY_VERSION_MAJOR << 16) | (BYWAY_VERSION_MINOR << 8) | BYWAY_VERSION_PATCH)
           && BYWAY_VERSION_AT_LEAST(BYWAY_VERSION_MAJOR, BYWAY_VERSION_MINOR, 0)
           && !BYWAY_VERSION_AT_LEAST(BYWAY_VERSION_MAJOR, BYWAY_VERSION_MINOR + 1, 0),
       "the version macros count their own parts");
    for (i = 0; i < count; i++) {
        byway_str name = { NULL, 0 };
        uint32_t size = 0, offsets[128];
        size_t total = 0;
        int found = 0, same = 1;
        for (index = 0; byway_layout(index, &name, &size, offsets, 128, &total) == BYWAY_OK; index++)
            if (!strcmp(name.data, expected[i].name)) {
                found = 1;
                break;
            }
        for (field = 0; field < expected[i].count && field < total; field++)
            same = same && expected[i].offsets[field] == offsets[field];
        OK(found && size == expected[i].size && total == expected[i].count && same,
           "%s: %u bytes, %u fields", expected[i].name, (unsigned)expected[i].size, (unsigned)expected[i].count);
    }
    OK(byway_layout(UINT32_MAX, NULL, NULL, NULL, 0, NULL) == BYWAY_DONE, "past the last struct");
    inits_agree();
    return tap_done();
}
