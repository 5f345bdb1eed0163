#include "tests/core/state/crash_states.h"

#include "core/state/new_folder.h"

#include <algorithm>

namespace yoke::test {

namespace {

// Content of the disk for certain, and later content that may be there too.
struct File {
    std::string synced;
    std::vector<std::string> later;
};
struct Folder {
    std::map<std::string, int> synced;
    std::vector<const Event *> later;
};

class Disk {
public:
    void apply(const Event &event);
    // Calls `see` with each state that a crash may leave now.
    template <class See>
    void each(const See &see) const;

private:
    std::set<int> reachable() const;
    template <class See>
    void each_content(const std::map<int, std::map<std::string, int>> &folders,
                      const See &see) const;
    void place(const std::map<int, std::map<std::string, int>> &folders, int node,
               const std::string &path, std::map<std::string, int> *files, Tree *tree) const;

    std::map<int, File> files_;
    std::map<int, Folder> folders_{{0, {}}};
};

void change(std::map<std::string, int> &folder, const Event &event)
{
    for (const auto &[name, node] : event.entries)
        if (node < 0)
            folder.erase(name);
        else
            folder[name] = node;
}

void Disk::apply(const Event &event)
{
    if (event.kind == Event::kFolder) {
        folders_[event.node];
    } else if (event.kind == Event::kEntries) {
        folders_[event.node].later.push_back(&event);
    } else if (event.kind == Event::kWrite) {
        files_[event.node].later.push_back(event.text);
    } else if (event.kind == Event::kSync) {
        // The node is either a file or a folder; the other entry stays empty.
        File &file = files_[event.node];
        for (const std::string &write : file.later) file.synced += write;
        file.later.clear();
        if (const auto folder = folders_.find(event.node); folder != folders_.end()) {
            for (const Event *one : folder->second.later) change(folder->second.synced, *one);
            folder->second.later.clear();
        }
    }
}

// The folders to which a name leads, or may lead after a crash.
std::set<int> Disk::reachable() const
{
    std::set<int> all;
    std::vector<int> next = {0};
    while (!next.empty()) {
        const int node = next.back();
        next.pop_back();
        const auto folder = folders_.find(node);
        if (folder == folders_.end() || !all.insert(node).second) continue;
        for (const auto &[name, inner] : folder->second.synced) next.push_back(inner);
        for (const Event *one : folder->second.later)
            for (const auto &[name, inner] : one->entries) next.push_back(inner);
    }
    return all;
}

template <class See>
void Disk::each(const See &see) const
{
    std::vector<std::pair<int, const Event *>> later;
    std::map<int, std::map<std::string, int>> synced;
    for (const int node : reachable()) {
        const Folder &folder = folders_.at(node);
        synced[node] = folder.synced;
        for (const Event *one : folder.later) later.emplace_back(node, one);
    }
    for (uint64_t chosen = 0; chosen < uint64_t{1} << later.size(); ++chosen) {
        auto folders = synced;
        for (size_t i = 0; i < later.size(); ++i)
            if (chosen >> i & 1) change(folders[later[i].first], *later[i].second);
        each_content(folders, see);
    }
}

void Disk::place(const std::map<int, std::map<std::string, int>> &folders, int node,
                 const std::string &path, std::map<std::string, int> *files, Tree *tree) const
{
    const auto folder = folders.find(node);
    if (folder == folders.end()) {
        (*files)[path] = node;
        return;
    }
    if (!path.empty()) (*tree)[path + "/"] = "";
    for (const auto &[name, inner] : folder->second)
        place(folders, inner, path.empty() ? name : path + "/" + name, files, tree);
}

// Returns the possible contents of a file after a crash. An earlier write may be missing although a later write is
// there; the gap then reads as zeros.
std::set<std::string> contents_of(const File &file)
{
    std::set<std::string> all = {file.synced};
    size_t end = file.synced.size();
    for (const std::string &write : file.later) {
        std::set<std::string> more = all;  // without this write
        for (std::string content : all) {
            content.resize(end);
            more.insert(content + write);
            more.insert(content + write.substr(0, write.size() / 2));
            more.insert(content + std::string(write.size(), '\0'));
        }
        all = std::move(more);
        end += write.size();
    }
    return all;
}

template <class See>
void Disk::each_content(const std::map<int, std::map<std::string, int>> &folders,
                        const See &see) const
{
    Tree empty;
    std::map<std::string, int> files;
    place(folders, 0, "", &files, &empty);
    std::vector<Tree> trees = {empty};
    for (const auto &[path, node] : files) {
        const auto file = files_.find(node);
        std::vector<Tree> more;
        for (const std::string &content : contents_of(file == files_.end() ? File{} : file->second))
            for (Tree tree : trees) {
                tree[path] = content;
                more.push_back(std::move(tree));
            }
        trees = std::move(more);
    }
    for (Tree &tree : trees) see(std::move(tree));
}

// ---- The loader -------------------------------------------------------------------------------------------------

std::string found_in(const Tree &tree, const std::string &place)
{
    if (const auto file = tree.find(place); file != tree.end()) return file->second;
    if (!tree.contains(place + "/")) return kAbsent;
    std::map<std::string, std::string> files;
    for (const auto &[path, content] : tree)
        if (path.starts_with(place + "/") && path.size() > place.size() + 1)
            files[path.substr(place.size() + 1)] = content;
    return folder_content(files);
}

}  // namespace

std::string shown(const Tree &tree)
{
    std::string text;
    for (const auto &[path, content] : tree) {
        std::string line = content;
        std::ranges::replace(line, '\0', '0');
        text += "  " + path + ": " + line + "\n";
    }
    return text;
}

std::string wrong_with(const Tree &tree, const Allowed &allowed)
{
    std::vector<std::string> entries;
    for (const auto &[path, content] : tree)
        if (const size_t slash = path.find('/');
            slash == std::string::npos || slash + 1 == path.size())
            entries.push_back(path.substr(0, slash));
    std::map<std::string, std::string> found;
    for (const auto &[name, contents] : allowed) found[name] = kAbsent;
    for (const FoundFolder &one : find_folders(entries))
        found[one.name] = found_in(tree, one.place);
    for (const auto &[name, content] : found)
        if (!allowed.contains(name) || !allowed.at(name).contains(content))
            return name + " is " + content + " in\n" + shown(tree);
    return "";
}

std::string folder_content(const std::map<std::string, std::string> &files)
{
    std::string text;
    for (const auto &[name, content] : files) text += name + "=" + content + ";";
    return text;
}

CrashStates crash_states(const std::vector<Event> &events, const Judge &judge)
{
    CrashStates states;
    Allowed allowed;
    Disk disk;
    const auto crash = [&] {
        std::set<Tree> here;
        disk.each([&](Tree tree) {
            ++states.tried;
            if (!here.insert(tree).second || !states.wrong.empty()) return;
            states.wrong = judge(tree, allowed);
        });
        states.seen.merge(here);
    };
    for (size_t i = 0; i < events.size() && states.wrong.empty(); ++i) {
        const Event &event = events[i];
        if (event.kind == Event::kReturned) allowed[event.name] = {event.text};
        if (event.kind == Event::kBegin) {
            std::set<std::string> &contents = allowed[event.name];
            if (contents.empty()) contents.insert(kAbsent);
            contents.insert(event.text);
        }
        disk.apply(event);
        // Other events neither add states nor rule states out.
        if (event.kind == Event::kEntries || event.kind == Event::kWrite ||
            event.kind == Event::kReturned)
            crash();
        if (!states.wrong.empty()) states.wrong = format("behind event %zu: ", i) + states.wrong;
    }
    return states;
}

std::vector<Event> without(std::vector<Event> events, size_t i)
{
    events.erase(events.begin() + static_cast<long>(i));
    return events;
}

std::vector<Event> moved(const std::vector<Event> &events, size_t i)
{
    const auto is_rename = [](const Event &event) { return event.entries.size() == 2; };
    size_t to = i;
    while (to < events.size() && !is_rename(events[to])) ++to;
    while (to < events.size() && is_rename(events[to])) ++to;
    std::vector<Event> other = without(events, i);
    other.insert(other.begin() + static_cast<long>(to) - 1, events[i]);
    return other;
}

}  // namespace yoke::test
