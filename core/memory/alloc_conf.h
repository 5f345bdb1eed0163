// alloc_conf.h: settings of the allocator, in PyTorch's form:
// "expandable_segments:True,garbage_collection_threshold:0.8".
//
// YOKE_ALLOC_CONF is read at the first use; a program may change settings at any time, for all devices.
#pragma once

#include <string>
#include <string_view>

namespace yoke {

struct AllocConf {
    // New memory comes as chunks that are mapped to addresses where the device has virtual memory; off: as segments.
    bool expandable_segments = true;
    // Before growth beyond this part of the device's memory, idle memory goes back to the backend; 0: never.
    double garbage_collection_threshold = 0;
    // A block used by another stream serves again as soon as this stream's work is seen to be done, which depends on
    // time. Off: the arena's stream waits for the work instead, so addresses are the same in each run.
    bool ask_fences = false;
};

// Returns the present settings; the first call reads YOKE_ALLOC_CONF. Raises YOKE_E_VALUE if the variable cannot be
// read.
AllocConf alloc_conf();

// Changes the settings named in the text. Raises YOKE_E_VALUE and changes nothing if a key is unknown or repeated, or
// a value is out of range. The message names `call`.
void set_alloc_conf(const char *call, std::string_view text);

// Returns a text for set_alloc_conf() with all settings.
std::string describe(const AllocConf &conf);

}  // namespace yoke
