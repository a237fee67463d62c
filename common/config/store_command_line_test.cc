#include "common/config/store_command_line.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(StoreCommandLineTest, FlagsBecomeOptions) {
  const auto line = ParseStoreCommandLine(
      {"--listen", "127.0.0.1:0", "--memory", "2GiB", "--disk", "pages",
       "--disk-size", "64MiB", "--transport", "tcp"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->options.listen.grpc, "127.0.0.1:0");
  EXPECT_EQ(line->options.memory_bytes, uint64_t{2} << 30);
  EXPECT_EQ(line->options.disk_directory, "pages");
  EXPECT_EQ(line->options.disk_bytes, uint64_t{64} << 20);
  EXPECT_EQ(line->options.transport, "tcp");
  EXPECT_FALSE(line->print.has_value());
}

TEST(StoreCommandLineTest, DefaultsNeedNoFlags) {
  const auto line = ParseStoreCommandLine({});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->options.memory_bytes, uint64_t{1} << 30);
  EXPECT_EQ(line->options.disk_directory, "");
}

TEST(StoreCommandLineTest, SaysWhatIsWrong) {
  EXPECT_FALSE(ParseStoreCommandLine({"--memory", "much"}).ok());
  EXPECT_FALSE(ParseStoreCommandLine({"--disk-size", "0"}).ok());
  EXPECT_FALSE(ParseStoreCommandLine({"--transport", "inproc"}).ok());
  EXPECT_FALSE(ParseStoreCommandLine({"--listen", "here"}).ok());
  EXPECT_FALSE(ParseStoreCommandLine({"--model", "x"}).ok());
}

TEST(StoreCommandLineTest, HelpAndVersionArePrinted) {
  EXPECT_NE(ParseStoreCommandLine({"--help"})->print->find("--disk-size"),
            std::string::npos);
  EXPECT_EQ(ParseStoreCommandLine({"--version"})->print->substr(0, 17),
            "penstock-kvstore ");
}

}  // namespace
}  // namespace penstock
