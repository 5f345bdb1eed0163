// Steps that are damaged, of a newer version, or lead elsewhere: core/state/manager*.cpp, manifest.cpp.
#include "tests/core/expect_error.h"
#include "tests/core/heard.h"
#include "tests/core/state/file_seam.h"
#include "tests/core/state/manager_states.h"

#include <filesystem>

namespace yoke::test {
namespace {

using Steps = std::vector<int64_t>;

std::string changed(std::string text, const std::string &from, const std::string &to)
{
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
}

// Damage to a step, and the reported reason why the step is not loaded.
struct Damage {
    const char *name;
    std::function<void(const std::string &step)> act;
    const char *told;
};

void rewrite(const std::string &step, const std::string &from, const std::string &to)
{
    const std::string path = step + "/MANIFEST.json";
    put(path, hashed(changed(content_of(path), from, to)));
}

const Damage kDamages[] = {
    {"no manifest",
     [](const std::string &step) { std::filesystem::remove(step + "/MANIFEST.json"); },
     "MANIFEST.json is missing"},
    {"an empty manifest", [](const std::string &step) { put(step + "/MANIFEST.json", ""); },
     "MANIFEST.json"},
    {"another file in its place",
     [](const std::string &step) { put(step + "/MANIFEST.json", "{\"format\": 1}"); },
     "does not end with its own hash"},
    {"a list in its place", [](const std::string &step) { put(step + "/MANIFEST.json", "[1]"); },
     "the manifest is a list; it must be an object"},
    {"a manifest changed by hand",
     [](const std::string &step) {
         const std::string path = step + "/MANIFEST.json";
         put(path, changed(content_of(path), "\"commit\": 2", "\"commit\": 3"));
     },
     "the manifest says hash"},
    {"a newer format that does not fit its hash",
     [](const std::string &step) {
         const std::string path = step + "/MANIFEST.json";
         put(path, changed(content_of(path), "\"format\": 1", "\"format\": 4"));
     },
     "has format 4, this version reads up to 1, and its own hash is wrong"},
    {"a manifest of megabytes",
     [](const std::string &step) {
         std::ofstream(step + "/MANIFEST.json").seekp(2 << 20).put('\n');
     },
     "a manifest has at most 1048576"},
    {"a manifest of another step",
     [](const std::string &step) { rewrite(step, "\"step\": 2", "\"step\": 20"); }, "says step 20"},
    {"an entry of another kind",
     [](const std::string &step) { rewrite(step, "\"bytes\": ", "\"bytes\": -"); },
     "\"bytes\" of an entry of \"files\" must be a whole number of at least 0"},
    {"no hash", [](const std::string &step) { rewrite(step, "\"xxh3_128\"", "\"md5\""); },
     "an entry of \"files\" has no \"xxh3_128\""},
    {"no state", [](const std::string &step) { rewrite(step, "state.safe", "other.safe"); },
     "\"files\" has no 'state.safetensors'"},
    {"a name that leads out",
     [](const std::string &step) {
         rewrite(step, "\"files\": [\n",
                 "\"files\": [\n{\"name\": \"../step-1/state.safetensors\", \"bytes\": 1, "
                 "\"xxh3_128\": \"00000000000000000000000000000000\"},\n");
     },
     "the manifest names the file '../step-1/state.safetensors'"},
    {"the folder itself as a file",
     [](const std::string &step) { rewrite(step, "state.safetensors", ".."); },
     "the manifest names the file '..'"},
    {"an absolute name",
     [](const std::string &step) { rewrite(step, "state.safetensors", "/etc/passwd"); },
     "the manifest names the file '/etc/passwd'"},
    {"no state file",
     [](const std::string &step) { std::filesystem::remove(step + "/state.safetensors"); },
     "state.safetensors is missing"},
    {"a link in place of a file",
     [](const std::string &step) {
         std::filesystem::rename(step + "/state.safetensors", step + "/../elsewhere");
         std::filesystem::create_symlink("../elsewhere", step + "/state.safetensors");
     },
     "is a link or a folder"},
    {"a folder in place of a file",
     [](const std::string &step) {
         std::filesystem::remove(step + "/state.safetensors");
         std::filesystem::create_directory(step + "/state.safetensors");
     },
     "is a link or a folder"},
    {"a shorter file",
     [](const std::string &step) {
         const std::string path = step + "/state.safetensors";
         std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
     },
     "the file was cut short or changed"},
    {"a bit flipped",
     [](const std::string &step) {
         const std::string path = step + "/state.safetensors";
         std::string bytes = content_of(path);
         bytes.back() = static_cast<char>(bytes.back() ^ 1);
         put(path, bytes);
     },
     "but its manifest says"},
};

TEST(Manager, DamagedStepsArePassedOverAndRefused)
{
    for (const Damage &damage : kDamages) {
        SCOPED_TRACE(damage.name);
        const TemporaryFolder folder;
        save_version(*manager_of(folder.path()), 1, 1);
        save_version(*manager_of(folder.path()), 2, 2);
        damage.act(folder.at("step-2"));
        const Ref<CheckpointManager> manager = manager_of(folder.path());
        const Heard heard;
        EXPECT_EQ(load_version(*manager), 1);
        ASSERT_EQ(heard.warnings.size(), 1u);
        EXPECT_NE(heard.warnings[0].find(damage.told), std::string::npos) << heard.warnings[0];
        EXPECT_NE(heard.warnings[0].find("step-1, and skips"), std::string::npos);
        expect_error(YOKE_E_CHECKPOINT, {kLoad, "step 2 is not complete", damage.told, "step-2/"},
                     [&] { (void)manager->load({.step = 2}, kLoad); });
        // The next save counts as the oldest what names and sizes tell to be damaged.
        const auto listed = [&] { return manager_of(folder.path())->steps(kLoad); };
        const Steps before = listed();
        save_version(*manager_of(folder.path(), 2), 3, 3);
        EXPECT_EQ(listed(), before == Steps{1} ? (Steps{1, 3}) : (Steps{2, 3}));
        std::filesystem::remove_all(folder.at("elsewhere"));
        EXPECT_LE(folder.names().size(), 4u);
        save_version(*manager_of(folder.path(), 1), 4, 4);
        EXPECT_EQ(manager->steps(kLoad), Steps{4});
    }
}

TEST(Manager, TheHashesAreReadOnlyWhereThatIsWanted)
{
    const TemporaryFolder folder;
    const Ref<CheckpointManager> manager = manager_of(folder.path());
    save_version(*manager, 1, 1);
    std::string bytes = content_of(folder.at("step-1/state.safetensors"));
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    put(folder.at("step-1/state.safetensors"), bytes);
    EXPECT_EQ(load_version(*manager, {.verify = false}), -1);
    expect_error(YOKE_E_CHECKPOINT, {"no step in", "(1) is complete", "has the hash"},
                 [&] { (void)manager->load({}, kLoad); });
}

TEST(Manager, FurtherFilesOfAStepAreHeldToTheManifestToo)
{
    const TemporaryFolder folder;
    const Ref<CheckpointManager> manager = manager_of(folder.path());
    save_version(*manager, 1, 1);
    put(folder.at("step-1/more.bin"), "abc");
    rewrite(folder.at("step-1"), "\"files\": [\n",
            "\"files\": [\n{\"name\": \"more.bin\", \"bytes\": 3, \"xxh3_128\": \"" +
                hash_text("abc") + "\"},\n");
    EXPECT_EQ(load_version(*manager), 1);
    put(folder.at("step-1/more.bin"), "abd");
    expect_error(YOKE_E_CHECKPOINT, {"more.bin has the hash"},
                 [&] { (void)manager->load({}, kLoad); });
    EXPECT_EQ(load_version(*manager, {.verify = false}), 1);
}

TEST(Manager, ANewerFormatIsRefusedAndNotPassedOver)
{
    const TemporaryFolder folder;
    for (const int64_t step : {1, 2}) save_version(*manager_of(folder.path()), step, step);
    const Ref<CheckpointManager> manager = manager_of(folder.path());
    rewrite(folder.at("step-2"), "\"format\": 1", "\"format\": 2");
    for (const std::optional<int64_t> step : {std::optional<int64_t>(), {2}})
        expect_error(YOKE_E_CHECKPOINT,
                     {"step-2/MANIFEST.json has format 2", "use a newer version"},
                     [&] { (void)manager->load({.step = step}, kLoad); });
    EXPECT_EQ(load_version(*manager, {.step = 1}), 1);
    // The number of the newer format counts, so the next save is newer.
    save_version(*manager_of(folder.path()), 3, 3);
    EXPECT_EQ(load_version(*manager), 3);
}

}  // namespace
}  // namespace yoke::test
