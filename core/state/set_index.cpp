#include "core/state/set_index.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/state/manifest.h"
#include "core/state/other_formats.h"
#include "core/state/tree_text.h"

#ifndef YOKE_WITHOUT_JSON
#include <nlohmann/json.hpp>
#endif

#include <algorithm>
#include <numeric>
#include <utility>

namespace yoke {

bool SetIndex::may_begin(std::string_view bytes)
{
    // A safetensors file begins with a length. Its last bytes are zero unless the length is too large.
    const size_t first = bytes.find_first_not_of(" \t\r\n");
    return first != std::string_view::npos && bytes[first] == '{' &&
           bytes.find('\0') == std::string_view::npos;
}

std::pair<std::string_view, std::string_view> SetIndex::metadata(size_t i) const
{
    return {text(metadata_[i].first), text(metadata_[i].second)};
}

std::string read_index_text(const ReadFile &file, const char *path)
{
    if (file.size() > SetIndex::kMostBytes)
        fail(YOKE_E_CHECKPOINT, "%s: an index has at most %llu bytes, but this index has %llu",
             path, static_cast<unsigned long long>(SetIndex::kMostBytes),
             static_cast<unsigned long long>(file.size()));
    std::string text(file.size(), '\0');
    file.read(0, text.data(), text.size());
    return text;
}

namespace {

void put_pair(std::string &json, std::string_view key, std::string_view value)
{
    json += json.back() == '{' ? "\n    " : ",\n    ";
    put_json_text(json, key);
    json += ": ";
    put_json_text(json, value);
}

}  // namespace

std::string make_set_index(const std::vector<FileOfSet> &files,
                           const std::vector<std::pair<std::string, std::string>> &metadata,
                           uint64_t tensor_bytes)
{
    std::vector<std::pair<std::string_view, std::string_view>> places;
    for (const FileOfSet &file : files)
        for (const std::string &tensor : file.tensors) places.emplace_back(tensor, file.name);
    std::ranges::sort(places);
    std::string json = "{\n  \"metadata\": {\n    \"total_size\": " + std::to_string(tensor_bytes);
    for (const auto &[key, value] : metadata) put_pair(json, key, value);
    json += "\n  },\n  \"weight_map\": {";
    for (const auto &[tensor, file] : places) put_pair(json, tensor, file);
    return json + "\n  }\n}\n";
}

#ifdef YOKE_WITHOUT_JSON

SetIndex SetIndex::read(std::string_view, const char *path)
{
    fail(YOKE_E_UNSUPPORTED,
         "%s: this build cannot read sets of files, because it was built without nlohmann-json",
         path);
}

#else

// Reader of the index, called by the parser. The first pass counts, so that the second pass allocates the kept texts
// once.
class SetIndex::Reader final : public nlohmann::json_sax<nlohmann::json> {
    using Json = nlohmann::json;

public:
    Reader(SetIndex &into, const char *path) : into_(into), path_(path) {}

    // Begins the second pass: allocates memory for the counted texts, and keeps texts from now on. Raises
    // YOKE_E_CHECKPOINT if the first pass found no weight_map.
    void keep()
    {
        if (!has_map_)
            fail_no_state(format(
                "%s: the file is not an index of a set of safetensors files: it has no 'weight_map'%s",
                path_,
                place_of(path_).name == kManifestName
                    ? "; it is the manifest of a CheckpointManager: name its folder"
                    : ""));
        into_.texts_.reserve(text_bytes_);
        into_.entries_.reserve(entry_count_);
        into_.files_.reserve(entry_count_);
        into_.metadata_.reserve(pair_count_);
        keeps_ = true;
        has_map_ = has_metadata_ = false;
        last_file_.clear();
        last_ = {};
    }

    bool start_object(size_t) override
    {
        if (is_skipped()) return skip();
        if (place_ == Place::kOutside) return enter(Place::kTop);
        if (place_ == Place::kMetadataBegin) return enter(Place::kMetadata);
        if (place_ == Place::kMapBegin) return enter(Place::kMap);
        return refuse("an object");
    }
    bool end_object() override
    {
        if (skipped_ > 0) return end_skipped();
        return enter(place_ == Place::kTop ? Place::kOutside : Place::kTop);
    }
    bool start_array(size_t) override { return is_skipped() ? skip() : refuse("an array"); }
    bool end_array() override { return end_skipped(); }
    bool key(std::string &name) override;
    bool string(std::string &text) override;
    bool number_unsigned(uint64_t) override { return scalar("a number"); }
    bool number_integer(int64_t) override { return scalar("a number"); }
    bool number_float(double, const std::string &) override { return scalar("a number"); }
    bool null() override { return scalar("null"); }
    bool boolean(bool) override { return scalar("true or false"); }
    bool binary(Json::binary_t &) override { return scalar("binary"); }
    bool parse_error(size_t position, const std::string &,
                     const nlohmann::detail::exception &error) override
    {
        fail(YOKE_E_CHECKPOINT, "%s: the index is not JSON at byte %zu: %s", path_, position,
             shown_name(error.what()).c_str());
    }

private:
    enum class Place {
        kOutside,
        kTop,    // a key is to come, or the end
        kOther,  // the value of an unused key
        kMetadataBegin,
        kMetadata,
        kMapBegin,
        kMap,
    };

    bool enter(Place place)
    {
        place_ = place;
        return true;
    }
    // Returns whether the next value is unused, however deep.
    bool is_skipped() const
    {
        return skipped_ > 0 || place_ == Place::kOther || place_ == Place::kMetadata;
    }
    bool skip()
    {
        ++skipped_;
        return true;
    }
    bool end_skipped()
    {
        --skipped_;
        return end_other();
    }
    bool end_other()
    {
        if (skipped_ == 0 && place_ == Place::kOther) place_ = Place::kTop;
        return true;
    }
    bool scalar(const char *what) { return is_skipped() ? end_other() : refuse(what); }
    [[noreturn]] bool refuse(const char *what) const;
    Text keep_text(std::string_view text);
    Text keep_file(const std::string &name);

    SetIndex &into_;
    const char *const path_;
    bool keeps_ = false, has_metadata_ = false, has_map_ = false;
    Place place_ = Place::kOutside;
    uint64_t skipped_ = 0;  // how deep
    std::string name_;      // the last key
    std::string last_file_;
    Text last_{};
    uint64_t text_bytes_ = 0, entry_count_ = 0, pair_count_ = 0;
};

bool SetIndex::Reader::refuse(const char *what) const
{
    if (place_ == Place::kMap)
        fail(YOKE_E_CHECKPOINT, "%s: the index has %s where the file of tensor '%s' belongs", path_,
             what, shown_name(name_).c_str());
    fail(YOKE_E_CHECKPOINT, "%s: the index has %s where an object with '%s' belongs", path_, what,
         place_ == Place::kOutside ? "weight_map" : name_.c_str());
}

SetIndex::Text SetIndex::Reader::keep_text(std::string_view text)
{
    text_bytes_ += keeps_ ? 0 : text.size();
    const Text place{static_cast<uint32_t>(into_.texts_.size()),
                     static_cast<uint32_t>(text.size())};
    if (keeps_) into_.texts_ += text;
    return place;
}

// Keeps the name of a file and returns its place. Reuses the last text, since many consecutive tensors are in the
// same file.
SetIndex::Text SetIndex::Reader::keep_file(const std::string &name)
{
    if (name == last_file_) return last_;
    last_file_ = name;
    return last_ = keep_text(name);
}

bool SetIndex::Reader::key(std::string &name)
{
    if (skipped_ > 0) return true;
    name_ = name;
    if (place_ != Place::kTop) return true;
    if (name != "weight_map" && name != "metadata") return enter(Place::kOther);
    const bool is_map = name == "weight_map";
    if (std::exchange(is_map ? has_map_ : has_metadata_, true))
        fail(YOKE_E_CHECKPOINT, "%s: the index has '%s' twice", path_, name.c_str());
    return enter(is_map ? Place::kMapBegin : Place::kMetadataBegin);
}

bool SetIndex::Reader::string(std::string &text)
{
    if (skipped_ > 0 || (place_ != Place::kMap && place_ != Place::kMetadata))
        return scalar("a string");
    const Text name = keep_text(name_);
    if (place_ == Place::kMetadata) {
        ++pair_count_;
        const Text value = keep_text(text);
        if (keeps_) into_.metadata_.emplace_back(name, value);
        return true;
    }
    ++entry_count_;
    const Text file = keep_file(text);
    if (!keeps_) return true;
    into_.entries_.push_back({name.begin, name.length, 0});
    into_.files_.push_back(file);
    return true;
}

// ---- Checks beyond JSON -----------------------------------------------------------------------------------------

void SetIndex::number_files()
{
    std::vector<uint32_t> order(entries_.size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::sort(order, {}, [&](uint32_t i) { return text(files_[i]); });
    std::vector<Text> numbered;
    for (const uint32_t i : order) {
        if (numbered.empty() || text(numbered.back()) != text(files_[i]))
            numbered.push_back(files_[i]);
        entries_[i].file = static_cast<uint32_t>(numbered.size() - 1);
    }
    files_ = std::move(numbered);
}

void SetIndex::check(const char *path)
{
    std::ranges::sort(entries_, {}, [&](const Entry &entry) { return name(entry); });
    const auto twice =
        std::ranges::adjacent_find(entries_, {}, [&](const Entry &entry) { return name(entry); });
    if (twice != entries_.end())
        fail(YOKE_E_CHECKPOINT, "%s: the index has tensor '%s' twice", path,
             shown_name(name(*twice)).c_str());
    std::vector<std::string_view> keys;
    for (size_t i = 0; i < metadata_count(); ++i) keys.push_back(metadata(i).first);
    std::ranges::sort(keys);
    const auto key = std::ranges::adjacent_find(keys);
    if (key != keys.end())
        fail(YOKE_E_CHECKPOINT, "%s: the metadata of the index has '%s' twice", path,
             shown_name(*key).c_str());
}

SetIndex SetIndex::read(std::string_view json, const char *path)
{
    if (json.size() > kMostBytes)
        fail(YOKE_E_CHECKPOINT, "%s: an index has at most %llu bytes, but this index has %zu", path,
             static_cast<unsigned long long>(kMostBytes), json.size());
    SetIndex found;
    Reader reader(found, path);
    nlohmann::json::sax_parse(json.begin(), json.end(), &reader);
    reader.keep();
    nlohmann::json::sax_parse(json.begin(), json.end(), &reader);
    found.number_files();
    found.check(path);
    return found;
}

#endif

}  // namespace yoke
