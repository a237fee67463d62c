#include "kernels/cpu/packed_weights.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBytes = (17 << 20) + 192;

class PackedWeightsTest : public ::testing::Test {
 protected:
  PackedWeightsTest()
      : folder_(fs::path(::testing::TempDir()) /
                ("packed_weights_" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
  }
  ~PackedWeightsTest() override { fs::remove_all(folder_); }

  PackedWeights::Options Options() const {
    return {.bytes = kBytes,
            .content = 0x1234,
            .layout = 7,
            .folder = (folder_ / "deep").string()};
  }
  // Values that depend on where they are.
  static uint8_t ValueAt(size_t i) {
    return static_cast<uint8_t>(i * 2654435761u >> 13);
  }
  PackedWeights Make(const PackedWeights::Options& options) {
    auto weights = PackedWeights::Create(options, &pool_, [&](uint8_t* data) {
      ++packed_;
      for (size_t i = 0; i < options.bytes; ++i) {
        EXPECT_EQ(data[i], 0);
        data[i] = ValueAt(i);
      }
    });
    EXPECT_TRUE(weights.ok()) << weights.status();
    for (size_t i = 0; i < options.bytes; ++i) {
      if (weights->data()[i] != ValueAt(i)) {
        ADD_FAILURE() << "another value at " << i;
        break;
      }
    }
    return *std::move(weights);
  }
  std::vector<fs::path> Files(const std::string& suffix) const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder_ / "deep")) {
      if (entry.path().extension() == suffix) files.push_back(entry.path());
    }
    return files;
  }

  const fs::path folder_;
  ThreadPool pool_{{.threads = 2}};
  int packed_ = 0;
};

TEST_F(PackedWeightsTest, WithoutAFolderOwnsItsMemory) {
  PackedWeights::Options options = Options();
  options.folder = "";
  EXPECT_FALSE(Make(options).cached());
  EXPECT_FALSE(Make(options).cached());
  EXPECT_EQ(packed_, 2);
}

TEST_F(PackedWeightsTest, WhatHasNoIdentityIsNotKept) {
  PackedWeights::Options options = Options();
  options.content = 0;
  EXPECT_FALSE(Make(options).cached());
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(PackedWeightsTest, PacksOnce) {
  const PackedWeights first = Make(Options());
  const PackedWeights second = Make(Options());
  EXPECT_TRUE(first.cached());
  EXPECT_TRUE(second.cached());
  EXPECT_NE(first.data(), second.data());
  EXPECT_EQ(packed_, 1);
  EXPECT_EQ(Files(".weights").size(), 1u);
  EXPECT_TRUE(Files(".new").empty());
  struct stat info;
  ASSERT_EQ(stat((folder_ / "deep").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST_F(PackedWeightsTest, AnotherContentOrLayoutIsAnotherFile) {
  PackedWeights::Options options = Options();
  Make(options);
  options.content = 0x1235;
  Make(options);
  options.layout = 8;
  Make(options);
  EXPECT_EQ(packed_, 3);
  EXPECT_EQ(Files(".weights").size(), 3u);
  Make(Options());
  EXPECT_EQ(packed_, 3);
}

TEST_F(PackedWeightsTest, ADamagedFileIsMadeAnew) {
  Make(Options());
  const fs::path file = Files(".weights").at(0);
  for (const std::streamoff at : {8, 17, 4096, 4096 + (16 << 20) + 3}) {
    std::fstream bytes(file, std::ios::binary | std::ios::in | std::ios::out);
    bytes.seekg(at);
    const char flipped = static_cast<char>(bytes.get() ^ 4);
    bytes.seekp(at);
    bytes.put(flipped);
    bytes.close();
    const int before = packed_;
    Make(Options());
    EXPECT_EQ(packed_, before + 1) << at;
  }
  fs::resize_file(file, fs::file_size(file) - 1);
  const int before = packed_;
  Make(Options());
  Make(Options());
  EXPECT_EQ(packed_, before + 1);
}

TEST_F(PackedWeightsTest, AFolderThatCannotBeUsedIsDoneWithout) {
  PackedWeights::Options options = Options();
  fs::create_directories(folder_);
  std::ofstream(folder_ / "file") << "x";
  options.folder = (folder_ / "file" / "below").string();
  EXPECT_FALSE(Make(options).cached());
}

TEST_F(PackedWeightsTest, AnAbandonedHalfIsReplaced) {
  Make(Options());
  const fs::path file = Files(".weights").at(0);
  fs::rename(file, file.string() + ".new");
  fs::resize_file(file.string() + ".new", kBytes * 2);
  EXPECT_TRUE(Make(Options()).cached());
  EXPECT_EQ(packed_, 2);
  EXPECT_EQ(fs::file_size(file), kBytes + 4096);
}

TEST_F(PackedWeightsTest, WhatIsLongUnusedGoes) {
  PackedWeights::Options options = Options();
  Make(options);
  const fs::path old = Files(".weights").at(0);
  fs::last_write_time(
      old, fs::file_time_type::clock::now() - std::chrono::hours(24 * 31));
  options.content = 5;
  Make(options);
  EXPECT_FALSE(fs::exists(old));
  EXPECT_EQ(Files(".weights").size(), 1u);
}

TEST_F(PackedWeightsTest, ProcessesThatStartTogetherPackOnce) {
  fs::create_directories(folder_);
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      ThreadPool pool({.threads = 1});
      auto weights =
          PackedWeights::Create(Options(), &pool, [&](uint8_t* data) {
            std::ofstream(folder_ / "packed", std::ios::app) << "x";
            for (size_t at = 0; at < kBytes; ++at) data[at] = ValueAt(at);
          });
      const bool right = weights.ok() && weights->cached() &&
                         weights->data()[kBytes - 1] == ValueAt(kBytes - 1);
      _exit(right ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(fs::file_size(folder_ / "packed"), 1u);
}

}  // namespace
}  // namespace penstock
