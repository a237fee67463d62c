#include "router/http/server/response_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "boost/beast/http/status.hpp"

namespace penstock {
namespace {

// As RFC 9110 wants it, whatever the locale.
std::string HttpDate(absl::Time time) {
  static constexpr const char* kDays[] = {"Mon", "Tue", "Wed", "Thu",
                                          "Fri", "Sat", "Sun"};
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr",
                                            "May", "Jun", "Jul", "Aug",
                                            "Sep", "Oct", "Nov", "Dec"};
  const absl::CivilSecond at = absl::ToCivilSecond(time, absl::UTCTimeZone());
  return absl::StrFormat(
      "%s, %02d %s %04d %02d:%02d:%02d GMT",
      kDays[static_cast<int>(absl::GetWeekday(absl::CivilDay(at)))], at.day(),
      kMonths[at.month() - 1], at.year(), at.hour(), at.minute(), at.second());
}

absl::string_view Reason(int status) {
  // The library's list has the registered ones only.
  if (status == 499) return "Client Closed Request";
  const auto text = boost::beast::http::obsolete_reason(
      static_cast<boost::beast::http::status>(status));
  return {text.data(), text.size()};
}

void AppendHeader(std::string* text, absl::string_view name,
                  absl::string_view value) {
  absl::StrAppend(text, name, ": ",
                  absl::StrReplaceAll(value, {{"\r", " "}, {"\n", " "}}),
                  "\r\n");
}

}  // namespace

std::string WriteHead(const ResponseHead& head, const HttpHeaders& headers) {
  std::string text =
      absl::StrCat("HTTP/1.1 ", head.status, " ", Reason(head.status), "\r\n");
  AppendHeader(&text, "Date", HttpDate(head.now));
  AppendHeader(&text, "Server", "penstock");
  for (const auto& [name, value] : headers) AppendHeader(&text, name, value);
  if (head.content_length.has_value()) {
    AppendHeader(&text, "Content-Length", absl::StrCat(*head.content_length));
  } else if (!head.http_1_0 && head.status >= 200 && head.status != 204) {
    AppendHeader(&text, "Transfer-Encoding", "chunked");
  }
  if (head.keep_alive) {
    AppendHeader(&text, "Connection", "keep-alive");
    AppendHeader(&text, "Keep-Alive",
                 absl::StrCat("timeout=",
                              absl::ToInt64Seconds(head.keep_alive_timeout)));
  } else {
    AppendHeader(&text, "Connection", "close");
  }
  return text + "\r\n";
}

std::string WriteChunk(absl::string_view piece) {
  if (piece.empty()) return "";
  return absl::StrCat(absl::Hex(piece.size()), "\r\n", piece, "\r\n");
}

}  // namespace penstock
