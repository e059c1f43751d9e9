// A second translation unit with the same header: everything in it must be inline.
#include "byway.hpp"
#include "byway.hpp"

byway::result<byway::queue> second_unit();
byway::result<byway::queue> second_unit() { return byway::queue::make(); }
