// names.cpp: names in errors for ops that scripts do not call by name.
#include "core/ops/launch.h"

#include <cstring>

namespace yoke {

namespace {

bool starts_with_name(const std::string &text)
{
    const size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_");
    return end != std::string::npos && end > 0 && text[0] != '_' && text.compare(end, 2, ": ") == 0;
}

// Removes "name: " from the beginning of a text, if it stands there.
void remove_name(std::string &text, const char *name)
{
    const size_t length = strlen(name);
    if (text.compare(0, length, name) == 0 && text.compare(length, 2, ": ") == 0)
        text.erase(0, length + 2);
}

}  // namespace

void raise_kernel_error(const OpDef &op, yoke_status status, const Device &device)
{
    const bool is_public = op.name[0] != '_', is_in_place = op.in_place_of >= 0;
    if (is_public && !is_in_place) rethrow_backend_error(status, op.name, device.name.c_str());
    try {
        rethrow_backend_error(status, op.name, device.name.c_str());
    } catch (const Error &error) {
        // Kernels of internal ops mostly name the public op: "binary_cross_entropy: …", behind the "_pair_loss: " of
        // the core. The kernel of an op in place names the op that it runs.
        std::string text = error.what();
        remove_name(text, op.name);
        if (is_in_place) remove_name(text, public_name(kOps[op.in_place_of]));
        if (is_public || !starts_with_name(text)) text = std::string(public_name(op)) + ": " + text;
        throw Error(error.status(), text, error.native_code(), device.name.c_str());
    }
}

}  // namespace yoke
