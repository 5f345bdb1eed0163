#include "core/state/manifest.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/state/hash.h"
#include "core/state/tree_text.h"

#include <algorithm>
#include <ctime>

namespace yoke {

namespace {

constexpr std::string_view kBeforeHash = "\"hash\": \"", kBehindHash = "\"\n}\n";

bool is_hash(std::string_view text)
{
    return text.size() == Hash128::kTextLength &&
           text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Line at the end of a manifest, and the text before.
struct OwnHash {
    std::string_view of, stored;
};

OwnHash own_hash(std::string_view text, const char *path)
{
    const size_t length = kBeforeHash.size() + Hash128::kTextLength + kBehindHash.size();
    if (text.size() >= length) {
        const std::string_view of = text.substr(0, text.size() - length);
        std::string_view line = text.substr(of.size());
        if (line.starts_with(kBeforeHash) && line.ends_with(kBehindHash)) {
            const std::string_view hash = line.substr(kBeforeHash.size(), Hash128::kTextLength);
            if (is_hash(hash)) return {of, hash};
        }
    }
    fail(YOKE_E_CHECKPOINT,
         "%s: the manifest does not end with its own hash, so it was cut short or changed", path);
}

void check_hash(std::string_view text, int64_t format, const char *path)
{
    const OwnHash own = own_hash(text, path);
    const std::string found = hash_text(own.of);
    if (own.stored == found) return;
    if (format > kManifestFormat)
        fail(
            YOKE_E_CHECKPOINT,
            "%s: the manifest has format %lld, this version reads up to %lld, and its own hash is wrong: it is damaged, or was changed by hand",
            path, static_cast<long long>(format), static_cast<long long>(kManifestFormat));
    fail(
        YOKE_E_CHECKPOINT,
        "%s: the manifest says hash %s, but its text has %s: it is damaged, or was changed by hand",
        path, std::string(own.stored).c_str(), found.c_str());
}

// Dict of a manifest. Its functions raise YOKE_E_CHECKPOINT for a missing key or a value of another kind.
class Entries {
public:
    Entries(const State &node, const char *what, const char *path)
        : dict_(node.get_if<StateDict>()), what_(what), path_(path)
    {
        if (!dict_)
            fail(YOKE_E_CHECKPOINT, "%s: %s is %s; it must be an object", path, what,
                 kind_text(node.kind()));
    }

    int64_t whole(const char *key, int64_t least) const
    {
        const auto *value = at(key).get_if<int64_t>();
        if (!value || *value < least)
            fail(YOKE_E_CHECKPOINT, "%s: \"%s\" of %s must be a whole number of at least %lld",
                 path_, key, what_, static_cast<long long>(least));
        return *value;
    }
    const std::string &text(const char *key) const
    {
        const auto *value = at(key).get_if<std::string>();
        if (!value) fail(YOKE_E_CHECKPOINT, "%s: \"%s\" of %s must be a string", path_, key, what_);
        return *value;
    }
    const State &at(const char *key) const
    {
        const State *found = dict_->find(std::string(key));
        if (!found) fail(YOKE_E_CHECKPOINT, "%s: %s has no \"%s\"", path_, what_, key);
        return *found;
    }

private:
    const StateDict *dict_;
    const char *what_, *path_;
};

// Raises YOKE_E_CHECKPOINT if the name is no plain name within the step's folder.
void check_name(const std::string &name, const char *path)
{
    const bool is_plain = !name.empty() && name != "." && name != ".." && name != kManifestName &&
                          name.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
    if (!is_plain)
        fail(
            YOKE_E_CHECKPOINT,
            "%s: the manifest names the file '%s'; the files of a step must be beside its manifest, with names without '/'",
            path, shown_name(name).c_str());
}

StepFile read_file_entry(const State &node, const char *path)
{
    const Entries entries(node, "an entry of \"files\"", path);
    StepFile file{entries.text("name"), static_cast<uint64_t>(entries.whole("bytes", 0)),
                  entries.text("xxh3_128")};
    check_name(file.name, path);
    if (!is_hash(file.hash))
        fail(YOKE_E_CHECKPOINT, "%s: \"xxh3_128\" of '%s' must be 32 hexadecimal digits", path,
             shown_name(file.name).c_str());
    return file;
}

void read_files(const State &node, Manifest &manifest, const char *path)
{
    const auto *list = node.get_if<StateList>();
    if (!list)
        fail(YOKE_E_CHECKPOINT, "%s: \"files\" is %s; it must be a list", path,
             kind_text(node.kind()));
    for (const Ref<State> &each : list->items) {
        StepFile file = read_file_entry(*each, path);
        if (manifest.find(file.name))
            fail(YOKE_E_CHECKPOINT, "%s: the manifest names the file '%s' twice", path,
                 shown_name(file.name).c_str());
        manifest.files.push_back(std::move(file));
    }
    if (!manifest.find(kStateName))
        fail(YOKE_E_CHECKPOINT, "%s: \"files\" has no '%s'", path, kStateName);
}

}  // namespace

const StepFile *Manifest::find(std::string_view name) const
{
    const auto found = std::ranges::find(files, name, &StepFile::name);
    return found == files.end() ? nullptr : &*found;
}

std::string utc_time()
{
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    gmtime_r(&now, &parts);
    char text[32];
    return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

std::string manifest_text(const Manifest &manifest)
{
    std::string text = format(
        "{\n\"format\": %lld,\n\"step\": %lld,\n\"commit\": %lld,\n\"time\": \"%s\",\n\"files\": [",
        static_cast<long long>(manifest.format), static_cast<long long>(manifest.step),
        static_cast<long long>(manifest.commit), manifest.time.c_str());
    for (const StepFile &file : manifest.files) {
        text += &file == &manifest.files.front() ? "\n{\"name\": " : ",\n{\"name\": ";
        put_json_text(text, file.name);
        text += format(", \"bytes\": %llu, \"xxh3_128\": \"%s\"}",
                       static_cast<unsigned long long>(file.bytes), file.hash.c_str());
    }
    text += "\n],\n";
    const std::string hash = hash_text(text);
    return text.append(kBeforeHash).append(hash).append(kBehindHash);
}

Manifest read_manifest(std::string_view text, const char *path)
{
    const Ref<State> root = read_tree(
        text, [](std::string_view) { return Tensor(); }, path);
    const Entries entries(*root, "the manifest", path);
    Manifest manifest;
    manifest.format = entries.whole("format", 1);
    check_hash(text, manifest.format, path);
    manifest.step = entries.whole("step", 0);
    manifest.commit = entries.whole("commit", 1);
    if (manifest.format > kManifestFormat) return manifest;
    manifest.time = entries.text("time");
    read_files(entries.at("files"), manifest, path);
    return manifest;
}

}  // namespace yoke
