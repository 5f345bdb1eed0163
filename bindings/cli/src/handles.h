// handles.h: self-releasing C handles, and statuses as exceptions, for the commands.
#pragma once

#include "yoke/yoke.h"

#include <memory>
#include <stdexcept>
#include <vector>

namespace yoke::cli {

// Error printed by main before an exit with 2.
struct Failure : std::runtime_error {
    yoke_status status;
    int64_t native_code;
    explicit Failure(yoke_status code)
        : std::runtime_error(yoke_last_error()->message),
          status(code),
          native_code(yoke_last_error()->native_code)
    {
    }
};

inline void check(yoke_status status)
{
    if (status != YOKE_OK) throw Failure(status);
}

template <auto release>
struct Releaser {
    template <class T>
    void operator()(T *handle) const noexcept
    {
        release(handle);
    }
};

using Inventory = std::unique_ptr<yoke_inventory, Releaser<yoke_inventory_release>>;
using Explanation = std::unique_ptr<yoke_explanation, Releaser<yoke_explanation_release>>;
using Report = std::unique_ptr<yoke_report, Releaser<yoke_report_release>>;
using Tensor = std::unique_ptr<yoke_tensor, Releaser<yoke_tensor_release>>;
using Tree = std::unique_ptr<yoke_state, Releaser<yoke_state_release>>;
using Device = std::unique_ptr<yoke_device, Releaser<yoke_device_release>>;

// Returns the handle from a C function's last argument: make<Tensor>(yoke_matmul, x, y).
template <class Handle, class Function, class... Args>
Handle make(Function function, Args... args)
{
    typename Handle::pointer handle = nullptr;
    check(function(args..., &handle));
    return Handle(handle);
}

// Returns a struct filled by the library: get<yoke_card_info>(yoke_inventory_card, inventory, index).
template <class Struct, class Function, class... Args>
Struct get(Function function, Args... args)
{
    Struct filled{};
    filled.struct_size = sizeof filled;
    check(function(args..., &filled));
    return filled;
}

inline std::vector<yoke_card_info> cards_of(yoke_inventory *inventory)
{
    std::vector<yoke_card_info> cards;
    for (int32_t i = 0; i < yoke_inventory_count(inventory); ++i)
        cards.push_back(get<yoke_card_info>(yoke_inventory_card, inventory, i));
    return cards;
}

}  // namespace yoke::cli
