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
    // A block that another stream has used serves again once its work is seen to be done, which depends on time. Off:
    // the arena's stream waits for that work instead, so that addresses are the same in each run.
    bool ask_fences = false;
};

// Raises YOKE_E_VALUE for a variable that cannot be read.
AllocConf alloc_conf();

// Changes the settings that the text names. Raises YOKE_E_VALUE, after which nothing is changed, for a key that is
// unknown or named twice, and for a value out of range; `call` is named.
void set_alloc_conf(const char *call, std::string_view text);

// Returns a text for set_alloc_conf() with all settings.
std::string describe(const AllocConf &conf);

}  // namespace yoke
