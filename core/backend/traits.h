// traits.h: what the core knows of a kind of device beside its backend's table, before that is opened and without it.
//
// One line for each kind, so that no other code asks what a kind is called.
#pragma once

#include "yoke/types.h"

#include <string_view>

namespace yoke {

struct KindTraits {
    const char *kind;
    bool is_module;  // it comes as a module of its own, which is loaded only where it can run
    const char
        *vendor;     // of the cards that it serves, as yoke_card_info::vendor has it; "" for none
    int32_t dlpack;  // its device type in DLPack; 0: DLPack has none
    yoke_dtype autocast;   // what autocast computes in where nobody says
    bool keeps_variables;  // the vendor's runtime reads its variables once, as it starts
    bool
        has_stream_names;  // the handles 1 and 2 are no pointers: the default stream, and one of each thread
    const char *engine;          // a library that its kernels call where it is found; "" for none
    const char *collectives;     // its engine of collectives, which runs late; "" for none
    const char *other_names[3];  // what users of other programs call it; "" for none
};

// Of a kind without a line: no module, no cards, no names.
const KindTraits &traits_of(std::string_view kind) noexcept;

// The kind that serves a vendor's cards; "" for none.
const char *kind_serving(std::string_view vendor) noexcept;

// The kind with a device type of DLPack's; nullptr for none.
const KindTraits *find_dlpack_kind(int32_t type) noexcept;

// The kind that a word of other programs' means ("gpu"); nullptr for none.
const char *kind_called(std::string_view word) noexcept;

// The kind whose kernels may call a library ("cudnn"); "" for none.
const char *kind_calling(std::string_view engine) noexcept;

// The kind whose engine of collectives has that name ("nccl"); "" for none.
const char *kind_reducing_by(std::string_view engine) noexcept;

// The nth of the kinds that come as modules; nullptr behind the last.
const char *module_kind(int nth) noexcept;

}  // namespace yoke
