#include "core/machine/catalog.h"

#include <algorithm>
#include <cctype>
#include <cmath>

namespace yoke {

namespace {

constexpr double kGiga = 1e9, kTera = 1e12;

constexpr yoke_catalog_card kCards[] = {
#define YOKE_MODEL(name, match, sms, cc, mib, bandwidth, f64, f32, tf32, f16, bf16, f8, i8, watts, \
                   nvlink, generation, width, source)                                              \
    {sizeof(yoke_catalog_card),                                                                    \
     sms,                                                                                          \
     (cc) / 10,                                                                                    \
     (cc) % 10,                                                                                    \
     int64_t{mib} << 20,                                                                           \
     (bandwidth)*kGiga,                                                                            \
     (f64)*kTera,                                                                                  \
     (f32)*kTera,                                                                                  \
     (tf32)*kTera,                                                                                 \
     (f16)*kTera,                                                                                  \
     (bf16)*kTera,                                                                                 \
     (f8)*kTera,                                                                                   \
     (i8)*kTera,                                                                                   \
     watts,                                                                                        \
     (nvlink)*kGiga,                                                                               \
     generation,                                                                                   \
     width,                                                                                        \
     name,                                                                                         \
     match,                                                                                        \
     source},
#include "core/machine/catalog.def"
#undef YOKE_MODEL
};

bool ends_in(std::string_view name, std::string_view model)
{
    if (!name.ends_with(model)) return false;
    return name.size() == model.size() ||
           !isalnum(static_cast<unsigned char>(name[name.size() - model.size() - 1]));
}

bool is_near(int64_t memory, int64_t of_model)
{
    if (memory <= 0 || of_model <= 0) return true;
    const double ratio = static_cast<double>(memory) / static_cast<double>(of_model);
    return ratio > 0.94 && ratio < 1.06;
}

}  // namespace

std::span<const yoke_catalog_card> catalog()
{
    return kCards;
}

int find_model(std::string_view name, int64_t memory)
{
    int best = -1;
    size_t longest = 0;
    for (size_t i = 0; i < std::size(kCards); ++i) {
        const std::string_view model = kCards[i].match;
        if (model.size() <= longest || !ends_in(name, model) || !is_near(memory, kCards[i].memory))
            continue;
        best = static_cast<int>(i);
        longest = model.size();
    }
    return best;
}

int64_t known_memory(const yoke_card_info &info)
{
    if (info.memory_total >= 0) return info.memory_total;
    const int model = find_model(info.name, -1);
    return model < 0 ? -1 : kCards[model].memory;
}

}  // namespace yoke
