#include "common/config/parse_flags.h"

#include "absl/strings/str_cat.h"

namespace penstock {

absl::StatusOr<std::optional<std::string>> ParseFlags(
    CLI::App& app, const std::string& program,
    const std::vector<std::string>& args) {
  std::vector<std::string> reversed(args.rbegin(), args.rend());
  // CLI11 reports by throwing; it ends here.
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    return app.help();
  } catch (const CLI::CallForVersion&) {
    return absl::StrCat(app.version(), "\n");
  } catch (const CLI::ParseError& e) {
    return absl::InvalidArgumentError(
        absl::StrCat(e.what(), " (see ", program, " --help)"));
  }
  return std::nullopt;
}

absl::Status CheckListen(const std::string& address) {
  if (address.find(':') != std::string::npos) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("listen is \"", address, "\"; it must be host:port"));
}

}  // namespace penstock
