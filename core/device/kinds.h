// kinds.h: what selection and switching off need to know of a kind beyond device.h.
#pragma once

#include "core/device/device.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace yoke {

// Its devices if it was opened, else none; never opens it.
std::vector<Device *> opened_devices_of(std::string_view kind);

bool is_disabled(std::string_view kind);
std::string disabled_text(const std::string &kind);

// One time more or less that the kind is switched off; false if there is no time less.
bool count_disabled(std::string_view kind, int32_t change);

// How often a kind was switched off or on so far: what was found out at one count holds at the same.
uint64_t disabled_changes() noexcept;

namespace detail {

// As the entries of core/base/lent.h that tell what lives on a device.
int64_t live_streams(Device &device, size_t most, std::vector<std::string> &names);

}  // namespace detail

}  // namespace yoke
