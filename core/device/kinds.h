// kinds.h: what selection and switching off need to know of a kind beyond device.h.
#pragma once

#include "core/device/device.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace yoke {

// Returns the devices of an opened kind, else none; never opens the kind.
std::vector<Device *> opened_devices_of(std::string_view kind);

bool is_disabled(std::string_view kind);
std::string disabled_text(const std::string &kind);

// Counts a switch off (1) or its end (-1); returns false if the kind was not switched off.
bool count_disabled(std::string_view kind, int32_t change);

// Returns the number of switches off and on so far, of all kinds. An unchanged number means unchanged availability.
uint64_t disabled_changes() noexcept;

namespace detail {

// Returns 1 if streams of scripts live on the device, else 0. Adds their number in words to `names`, such as "2
// streams of cuda:0", if `most` is above 0. Implements an entry of core/base/lent.h.
int64_t live_streams(Device &device, size_t most, std::vector<std::string> &names);

}  // namespace detail

}  // namespace yoke
