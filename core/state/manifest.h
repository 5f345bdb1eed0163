// manifest.h: what a step of a CheckpointManager says of itself: MANIFEST.json, the last file that is written into its
// folder.
//
//   {
//   "format": 1,
//   "step": 700,
//   "commit": 12,
//   "time": "2026-11-24T08:16:16Z",
//   "files": [
//   {"name": "state.safetensors", "bytes": 4096, "xxh3_128": "…"}
//   ],
//   "hash": "…"
//   }
//
// "commit" counts the steps that a folder was given: the newest is the one with the largest, since a run may go back.
// "hash" is of all bytes before its line. In every later format these lines stay as they are, so that a newer one is
// told from a damaged one; one whose files hold slices of tensors, from several ranks, has a larger number.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace yoke {

inline constexpr int64_t kManifestFormat = 1;
inline constexpr const char *kManifestName = "MANIFEST.json";
inline constexpr const char *kStateName = "state.safetensors";

struct StepFile {
    std::string name;
    uint64_t bytes = 0;
    std::string hash;  // Hash128's text
};

struct Manifest {
    int64_t format = kManifestFormat;
    int64_t step = 0, commit = 0;
    std::string time;  // in UTC
    std::vector<StepFile> files;

    // Null where it names no such file.
    const StepFile *find(std::string_view name) const;
};

std::string manifest_text(const Manifest &manifest);

// Raises YOKE_E_CHECKPOINT, naming `path`, for what is no such text, or a damaged one. Of a larger format it reads
// format, step and commit alone.
Manifest read_manifest(std::string_view text, const char *path);

// Now, "2026-11-24T08:16:16Z".
std::string utc_time();

}  // namespace yoke
