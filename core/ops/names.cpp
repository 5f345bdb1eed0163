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

}  // namespace

void raise_kernel_error(const OpDef &op, yoke_status status, const Device &device)
{
    if (op.name[0] != '_') rethrow_backend_error(status, op.name, device.name.c_str());
    try {
        rethrow_backend_error(status, op.name, device.name.c_str());
    } catch (const Error &error) {
        // Kernels of internal ops mostly name the public op: "binary_cross_entropy: …", behind the "_pair_loss: " of
        // the core.
        std::string text = error.what();
        const size_t length = strlen(op.name);
        if (text.compare(0, length, op.name) == 0 && text.compare(length, 2, ": ") == 0)
            text.erase(0, length + 2);
        if (!starts_with_name(text)) text = std::string(public_name(op)) + ": " + text;
        throw Error(error.status(), text, error.native_code(), device.name.c_str());
    }
}

}  // namespace yoke
