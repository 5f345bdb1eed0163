// traits.h: facts of the core about a kind of device, apart from the backend's table. The facts are known before the
// backend is opened, and without a backend.
//
// Each kind has a line, so no other code compares the names of kinds.
#pragma once

#include "yoke/types.h"

#include <string_view>

namespace yoke {

struct KindTraits {
    const char *kind;
    bool is_module;        // comes as a module of its own, loaded only if it can run
    const char *vendor;    // vendor of the served cards, as in yoke_card_info::vendor; "" for none
    int32_t dlpack;        // device type in DLPack; 0: DLPack has none
    yoke_dtype autocast;   // default dtype of autocast
    bool keeps_variables;  // the vendor's runtime reads its variables only once, at start
    bool
        has_stream_names;  // the handles 1 and 2 are no pointers: the default stream, and one of each thread
    const char *engine;          // optional library called by the kernels; "" for none
    const char *collectives;     // engine of collectives, which is deferred; "" for none
    const char *other_names[3];  // names used by other programs; "" for none
};

// Returns the line of a kind. A kind without a line has no module, no cards, no names.
const KindTraits &traits_of(std::string_view kind) noexcept;

// Returns the kind for a vendor's cards; "" for none.
const char *kind_serving(std::string_view vendor) noexcept;

// Returns the kind with a device type of DLPack's; nullptr for none.
const KindTraits *find_dlpack_kind(int32_t type) noexcept;

// Returns the kind for a word of other programs ("gpu"); nullptr for none.
const char *kind_called(std::string_view word) noexcept;

// Returns the kind whose kernels may call a library ("cudnn"); "" for none.
const char *kind_calling(std::string_view engine) noexcept;

// Returns the kind whose engine of collectives has the name ("nccl"); "" for none.
const char *kind_reducing_by(std::string_view engine) noexcept;

// Returns the nth of the kinds that come as modules; nullptr behind the last.
const char *module_kind(int nth) noexcept;

}  // namespace yoke
