// manager_states.h: states of a run with their version in every part.
#pragma once

#include "core/select/select.h"
#include "core/state/hash.h"
#include "core/state/manager.h"
#include "core/tensor/tensor.h"

#include <gtest/gtest.h>

#include <fstream>

namespace yoke::test {

constexpr const char *kSave = "save", *kLoad = "load";

inline Tensor filled(int64_t count, float value)
{
    const int64_t shape[] = {count};
    Tensor made = make_tensor(open_device("cpu"), YOKE_F32, shape, kSave);
    for (int64_t i = 0; i < count; ++i) reinterpret_cast<float *>(made->data)[i] = value;
    return made;
}

// A plain value and two tensors.
inline Ref<State> state_of_version(int64_t version)
{
    Ref<State> state = State::make(StateDict());
    state->set("version", State::make(version), kSave);
    state->set("net/weight", State::make(filled(6, static_cast<float>(version))), kSave);
    state->set("net/bias", State::make(filled(2, static_cast<float>(version))), kSave);
    return state;
}

// Returns -1 if the parts have different versions.
inline int64_t version_of(State &state)
{
    const int64_t version = std::get<int64_t>(state.at("version", kLoad).value());
    for (const char *path : {"net/weight", "net/bias"}) {
        const Tensor &tensor = std::get<Tensor>(state.at(path, kLoad).value());
        for (int64_t i = 0; i < tensor->numel; ++i)
            if (reinterpret_cast<const float *>(tensor->data)[i] != static_cast<float>(version))
                return -1;
    }
    return version;
}

inline Ref<CheckpointManager> manager_of(const std::string &folder, int64_t keep = 3)
{
    return CheckpointManager::open(folder, keep, "CheckpointManager");
}

inline void save_version(CheckpointManager &manager, int64_t step, int64_t version)
{
    manager.save(step, *state_of_version(version), {}, kSave)->wait(-1);
}

inline int64_t load_version(const CheckpointManager &manager, ManagerLoad options = {})
{
    return version_of(*manager.load(options, kLoad));
}

inline void put(const std::string &path, const std::string &content)
{
    std::ofstream(path, std::ios::binary) << content;
}

// Returns a manifest with the right hash for any text.
inline std::string hashed(const std::string &text)
{
    const std::string of = text.substr(0, text.rfind("\"hash\""));
    return of + "\"hash\": \"" + hash_text(of) + "\"\n}\n";
}

}  // namespace yoke::test
