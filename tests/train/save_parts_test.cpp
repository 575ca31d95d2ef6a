// Order of the steps by which a save becomes a checkpoint.
#include "weft/train/saves/save_parts.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/train/train_support.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"
#include "weft/checkpoint/step_folders.h"
#include "weft/train/saves/state_list.h"

namespace weft::train {
namespace save_parts_test {

namespace fs = std::filesystem;

// If the manifest cannot be written, the pointer stays: its target must be whole.
TEST(SaveParts, ThePointerIsWrittenBehindTheManifest) {
  const fs::path save =
      fs::path(::testing::TempDir()) / base::text("weft_save_parts_{}", ::getpid());
  fs::create_directories(save);
  config::Config config = small_config();
  config.checkpoint.save = save.string();
  on_ranks(config, [&](Engine& engine) {
    Progress progress(engine.pool(), config.rng.seed);
    const std::vector<checkpoint::StateEntry> entries =
        stored_entries(state_list(engine, progress));
    const auto save_with = [&](const auto& disturb) {
      const SavePlace place(engine, progress);
      EXPECT_EQ(make_room(place), "");
      const std::string told =
          write_part(place,
                     0,
                     entries,
                     checkpoint::read_tensors(engine.lanes()[schedule::Lane::Compute], entries));
      disturb(place.folder() / checkpoint::kManifestName);
      return finish_save(place, {told});
    };
    EXPECT_EQ(save_with([](const fs::path&) {}), "");
    EXPECT_EQ(base::read_text(save / checkpoint::kTrackerName), "0\n");
    progress.advance(1);
    const std::string failure = save_with(
        [](const fs::path& manifest) { fs::create_directories(manifest / "in the way"); });
    EXPECT_NE(failure.find("is a folder"), std::string::npos) << failure;
    EXPECT_EQ(base::read_text(save / checkpoint::kTrackerName), "0\n");
  });
  fs::remove_all(save);
}

}  // namespace save_parts_test
}  // namespace weft::train
