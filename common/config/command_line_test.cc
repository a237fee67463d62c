#include "common/config/command_line.h"

#include <fstream>

#include "common/config/config_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protos/config.pb.h"

namespace penstock {
namespace {

using testing::HasSubstr;

std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

std::string WriteFile(const std::string& name, const std::string& text) {
  std::string path = testing::TempDir() + name;
  std::ofstream(path) << text;
  return path;
}

TEST(CommandLineTest, FlagsWinOverTheFileAndTheFileOverDefaults) {
  std::string path = WriteFile("worker.cfg", R"(
    version: 1
    model: "from-file.gguf"
    kv_memory: "64MiB"
    kv_disk: "/var/kv"
    kv_type: "int8"
    kv_disk_bytes: "2GiB"
    kvstore: "127.0.0.1:50061"
    weights_cache: "off"
    precision: "exact"
    threads: 3
    data_listen: "0.0.0.0:4711"
    data_advertise: "10.0.0.7"
    router: "127.0.0.1:1"
    router: "127.0.0.1:2")");
  auto line = ParseWorkerCommandLine(
      "decode",
      {"--config", path, "--threads", "5", "--data-advertise", "10.0.0.8",
       "--kv-host-memory", "1GiB", "--kv-disk-bytes", "3GiB"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->options.model, "from-file.gguf");
  EXPECT_EQ(line->options.kv_memory_bytes, 64u << 20);
  EXPECT_EQ(line->options.kv_host_memory_bytes, 1u << 30);
  EXPECT_EQ(line->options.kv_disk, "/var/kv");
  EXPECT_EQ(line->options.kv_type, "int8");
  EXPECT_EQ(line->options.kv_disk_bytes, uint64_t{3} << 30);
  EXPECT_EQ(line->options.kvstore, "127.0.0.1:50061");
  EXPECT_EQ(line->options.weights_cache, "off");
  EXPECT_EQ(line->options.precision, "exact");
  EXPECT_EQ(line->options.threads, 5);
  EXPECT_EQ(line->options.data_listen, "0.0.0.0:4711");
  EXPECT_EQ(line->options.data_advertise, "10.0.0.8");
  EXPECT_EQ(line->options.routers.size(), 2u);
  EXPECT_EQ(line->options.backend, "auto");
}

TEST(CommandLineTest, MemoryOfThePrefixIndexIsASize) {
  auto parse = [](std::vector<std::string> args) {
    args.insert(args.end(), {"--model", "m"});
    return ParseRouterCommandLine(args);
  };
  const std::string path =
      WriteFile("router.cfg", "version: 1 tuning { prefix_memory: \"64MiB\" }");
  EXPECT_EQ(parse({})->options.prefix_memory_bytes, uint64_t{1} << 30);
  auto line = parse({"--config", path});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->options.prefix_memory_bytes, uint64_t{64} << 20);
  line = parse({"--config", path, "--prefix-memory", "2GiB"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->options.prefix_memory_bytes, uint64_t{2} << 30);
  EXPECT_FALSE(parse({"--prefix-memory", "much"}).ok());
  EXPECT_FALSE(parse({"--prefix-memory", "1000KiB"}).ok());
}

TEST(CommandLineTest, TenantsComeFromTheFile) {
  auto parse = [](const std::string& limits) {
    return ParseRouterCommandLine(
        {"--model", "m", "--config",
         WriteFile("router.cfg", "version: 1 limits {" + limits + "}")});
  };
  auto line = parse(R"(
    max_queue_age_ms: 1500
    tenants { name: "a" weight: 3 max_running: 2 api_keys: "key-of-a" }
    tenants { name: "b" max_queued: 7 }
    other_tenants { weight: 2 })");
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->options.max_queue_age, absl::Milliseconds(1500));
  ASSERT_EQ(line->options.tenants.size(), 2u);
  EXPECT_EQ(line->options.tenants[0].name, "a");
  EXPECT_EQ(line->options.tenants[0].weight, 3);
  EXPECT_EQ(line->options.tenants[0].max_running, 2);
  EXPECT_EQ(line->options.tenants[0].api_keys,
            std::vector<std::string>{"key-of-a"});
  EXPECT_EQ(line->options.tenants[1].weight, 1);
  EXPECT_EQ(line->options.tenants[1].max_queued, 7);
  EXPECT_EQ(line->options.other_tenants.weight, 2);
  for (const char* wrong :
       {"tenants { name: \"a\" weight: 0 }", "tenants { weight: 1 }",
        "tenants { name: \"a\" } tenants { name: \"a\" }",
        "max_queue_age_ms: 0", "tenants { name: \"a\" api_keys: \"short\" }",
        "tenants { name: \"a\" api_keys: [\"12345678\", \"12345678\"] }",
        "other_tenants { api_keys: \"12345678\" }",
        "} http { require_api_key: true"}) {
    EXPECT_FALSE(parse(wrong).ok()) << wrong;
  }
  line = parse(R"(tenants { name: "a" api_keys: "12345678" }}
                  http { require_api_key: true trust_tenant_header: true)");
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_TRUE(line->options.http.require_api_key);
  EXPECT_TRUE(line->options.http.trust_tenant_header);
}

TEST(CommandLineTest, RoutersGivenAsFlagsReplaceTheDefault) {
  auto line = ParseWorkerCommandLine(
      "prefill", {"--model", "m", "--router", "a:1,b:2", "--router", "c:3"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->options.routers,
            (std::vector<std::string>{"a:1", "b:2", "c:3"}));
}

TEST(CommandLineTest, ASwitchThatIsOnCanBeTurnedOff) {
  EXPECT_TRUE(ParseRouterCommandLine({"--model", "m"})->options.spill_prefill);
  const std::string file =
      WriteFile("off.cfg", "version: 1 tuning { spill_prefill: false }");
  auto off = ParseRouterCommandLine({"--model", "m", "--config", file});
  ASSERT_TRUE(off.ok()) << off.status();
  EXPECT_FALSE(off->options.spill_prefill);
  auto flag = ParseRouterCommandLine(
      {"--model", "m", "--config", file, "--spill-prefill"});
  ASSERT_TRUE(flag.ok()) << flag.status();
  EXPECT_TRUE(flag->options.spill_prefill);
  EXPECT_FALSE(ParseRouterCommandLine({"--model", "m", "--no-spill-prefill"})
                   ->options.spill_prefill);
}

TEST(CommandLineTest, AnUnknownKeyIsNamedWithItsNeighbour) {
  penstock::v1::WorkerConfig config;
  absl::Status status =
      ParseConfig("version: 1\nkv_memoryy: \"1GiB\"", "w.cfg", config);
  EXPECT_THAT(Message(status), HasSubstr("w.cfg: line 2"));
  EXPECT_THAT(Message(status), HasSubstr("Did you mean \"kv_memory\"?"));
}

TEST(CommandLineTest, TheVersionIsChecked) {
  penstock::v1::RouterConfig config;
  EXPECT_THAT(Message(ParseConfig("version: 7", "r.cfg", config)),
              HasSubstr("version is 7; it must be 1"));
  EXPECT_THAT(Message(ParseConfig("", "r.cfg", config)), HasSubstr("version"));
}

TEST(CommandLineTest, ErrorsNameTheFlagAndTheWayOut) {
  auto parse = [](std::vector<std::string> args) {
    return Message(ParseWorkerCommandLine("decode", args).status());
  };
  EXPECT_THAT(parse({}), HasSubstr("--model PATH"));
  EXPECT_THAT(parse({"--model", "m", "--backend", "gpu"}),
              HasSubstr("auto, avx512, avx2, scalar, oracle"));
  EXPECT_THAT(parse({"--model", "m", "--kv-memory", "lots"}),
              HasSubstr("512MiB"));
  EXPECT_THAT(parse({"--model", "m", "--kv-type", "int3"}),
              HasSubstr("f16, f32, bf16, fp8, int8, int4"));
  EXPECT_THAT(parse({"--model", "m", "--no-such-flag"}),
              HasSubstr("--no-such-flag"));
  EXPECT_THAT(parse({"--config", "/no/such/file"}), HasSubstr("/no/such/file"));
}

TEST(CommandLineTest, HelpAndVersionAreTexts) {
  auto help = ParseRouterCommandLine({"--help"});
  ASSERT_TRUE(help.ok());
  EXPECT_THAT(*help->print, HasSubstr("--local-prefill-tokens"));
  auto version = ParseWorkerCommandLine("prefill", {"--version"});
  ASSERT_TRUE(version.ok());
  EXPECT_THAT(*version->print, testing::StartsWith("penstock-prefill 0."));
}

TEST(CommandLineTest, SizesAreChecked) {
  EXPECT_EQ(*ParseSize("s", "4096"), 4096u);
  EXPECT_EQ(*ParseSize("s", "2GiB"), uint64_t{2} << 30);
  for (const char* bad :
       {"", "0", "-1", "1.5GiB", "99999999999999GiB", "GiB"}) {
    EXPECT_FALSE(ParseSize("s", bad).ok()) << bad;
  }
}

TEST(CommandLineTest, TheClusterKeyLosesItsNewline) {
  EXPECT_EQ(*ReadClusterKey(WriteFile("key", "secret\n")), "secret");
  EXPECT_EQ(*ReadClusterKey(""), "");
  EXPECT_FALSE(ReadClusterKey(WriteFile("empty", "\n")).ok());
}

}  // namespace
}  // namespace penstock
