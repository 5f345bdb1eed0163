// manifest.h: MANIFEST.json, the description of a step of a CheckpointManager, and the last file written into the
// step's folder.
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
// "commit" counts the steps that a folder was given. The newest step has the largest commit, since a run may go back
// to an older step. "hash" covers all bytes before its line. These lines stay the same in every later format, so a
// newer manifest can be told from a damaged one. If files hold slices of tensors from several ranks, the format has a
// larger number.
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

    // Returns the entry of a file, or null if the manifest does not list the file.
    const StepFile *find(std::string_view name) const;
};

std::string manifest_text(const Manifest &manifest);

// Reads a manifest and checks its hash. Raises YOKE_E_CHECKPOINT, with `path`, if the text is no manifest or is
// damaged. For a larger format, reads only format, step and commit.
Manifest read_manifest(std::string_view text, const char *path);

// Returns the time now: "2026-11-24T08:16:16Z".
std::string utc_time();

}  // namespace yoke
