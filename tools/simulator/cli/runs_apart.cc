#include "tools/simulator/cli/runs_apart.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"

namespace penstock {
namespace {

// No run takes longer unless it never ends.
constexpr unsigned kMostSeconds = 300;
constexpr size_t kSaidLast = 4096;

template <typename Visit>
void VisitNumbers(SimReport& report, Visit&& visit) {
  for (int64_t* field : {&report.events, &report.faults, &report.requests,
                         &report.finished, &report.failed, &report.refused,
                         &report.tokens, &report.tokens_computed}) {
    visit(*field);
  }
}

// One line without its end, for a reader of the same build.
std::string ToLine(SimReport report) {
  std::vector<std::string> fields = {
      absl::CEscape(report.promise),
      absl::CEscape(report.violation),
      absl::CEscape(absl::StrJoin(report.last_events, "\n")),
      absl::StrCat(report.log_hash),
      absl::StrCat(absl::ToInt64Nanoseconds(report.virtual_time)),
      absl::StrJoin(report.faults_by_kind, ",",
                    [](std::string* out, const auto& entry) {
                      absl::StrAppend(out, static_cast<int>(entry.first), "=",
                                      entry.second);
                    }),
      absl::StrJoin(report.failures, ",", absl::PairFormatter("="))};
  VisitNumbers(report,
               [&](int64_t field) { fields.push_back(absl::StrCat(field)); });
  return absl::StrJoin(fields, "\t");
}

template <typename Number>
Number ToNumber(absl::string_view text) {
  Number number = 0;
  CHECK(absl::SimpleAtoi(text, &number)) << text;
  return number;
}

// Of "name=count,...".
template <typename Visit>
void VisitCounts(absl::string_view text, Visit&& visit) {
  for (absl::string_view entry : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(entry, '=');
    visit(pair.first, ToNumber<int64_t>(pair.second));
  }
}

std::string Unescaped(absl::string_view text) {
  std::string out;
  CHECK(absl::CUnescape(text, &out));
  return out;
}

SimReport FromLine(absl::string_view line) {
  const std::vector<absl::string_view> fields = absl::StrSplit(line, '\t');
  SimReport report;
  size_t at = 7;
  VisitNumbers(report, [&](int64_t& field) {
    CHECK(at < fields.size());
    field = ToNumber<int64_t>(fields[at++]);
  });
  report.promise = Unescaped(fields[0]);
  report.violation = Unescaped(fields[1]);
  report.last_events =
      absl::StrSplit(Unescaped(fields[2]), '\n', absl::SkipEmpty());
  report.log_hash = ToNumber<uint64_t>(fields[3]);
  report.virtual_time = absl::Nanoseconds(ToNumber<int64_t>(fields[4]));
  VisitCounts(fields[5], [&](absl::string_view name, int64_t count) {
    report.faults_by_kind[static_cast<FaultKind>(ToNumber<int>(name))] = count;
  });
  VisitCounts(fields[6], [&](absl::string_view name, int64_t count) {
    report.failures[std::string(name)] = count;
  });
  return report;
}

// A process of its own that writes lines to us.
class Apart {
 public:
  using Write = std::function<void(const std::string& line)>;

  explicit Apart(const std::function<void(const Write&)>& work);
  ~Apart();
  Apart(const Apart&) = delete;
  Apart& operator=(const Apart&) = delete;

  int fd() const { return out_; }
  // What it wrote since the last call; waits for something. Nothing: it ended.
  std::vector<std::string> ReadLines();
  // After its end: nothing when it ended well, else how and what it said last.
  std::optional<std::string> Death();

 private:
  pid_t pid_ = -1;
  int out_ = -1;
  std::FILE* said_ = nullptr;  // its stderr
  std::string partial_;
};

Apart::Apart(const std::function<void(const Write&)>& work)
    : said_(std::tmpfile()) {
  CHECK(said_ != nullptr) << std::strerror(errno);
  int ends[2];
  CHECK(pipe(ends) == 0) << std::strerror(errno);
  std::fflush(nullptr);
  const pid_t parent = getpid();
  pid_ = fork();
  CHECK(pid_ >= 0) << std::strerror(errno);
  if (pid_ > 0) {
    close(ends[1]);
    out_ = ends[0];
    return;
  }
  close(ends[0]);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  dup2(fileno(said_), STDERR_FILENO);
  work([fd = ends[1]](const std::string& line) {
    const std::string all = line + "\n";
    for (size_t sent = 0; sent < all.size();) {
      const ssize_t count = write(fd, all.data() + sent, all.size() - sent);
      if (count < 0 && errno != EINTR) _exit(1);
      if (count > 0) sent += static_cast<size_t>(count);
    }
  });
  // Not exit: what runs at exit is the parent's to run.
  _exit(0);
}

Apart::~Apart() {
  // Never without a process: kill(-1) would reach everybody's.
  if (pid_ > 0) kill(pid_, SIGKILL);
  Death();
  close(out_);
  std::fclose(said_);
}

std::vector<std::string> Apart::ReadLines() {
  char bytes[16384];
  while (true) {
    const ssize_t count = read(out_, bytes, sizeof(bytes));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return {};
    partial_.append(bytes, static_cast<size_t>(count));
    std::vector<std::string> lines = absl::StrSplit(partial_, '\n');
    partial_ = std::move(lines.back());
    lines.pop_back();
    if (!lines.empty()) return lines;
  }
}

std::optional<std::string> Apart::Death() {
  if (pid_ < 0) return std::nullopt;
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return std::nullopt;
  std::string said(kSaidLast, '\0');
  std::fseek(said_, 0, SEEK_END);
  std::fseek(said_, std::max(0L, std::ftell(said_) - 4096L), SEEK_SET);
  said.resize(std::fread(said.data(), 1, said.size(), said_));
  return absl::StrCat(
      WIFSIGNALED(status)
          ? absl::StrCat("ended by signal ", WTERMSIG(status))
          : absl::StrCat("ended with status ", WEXITSTATUS(status)),
      ", having said:\n", said);
}

SimReport DeadReport(Apart& apart) {
  SimReport report;
  report.promise = kProcessLives;
  report.violation = apart.Death().value_or("ended early");
  return report;
}

void RunSeeds(uint64_t first, uint64_t last, uint64_t stride,
              const Apart::Write& write) {
  ResetCoverageMarks();
  for (uint64_t seed = first; seed <= last; seed += stride) {
    alarm(kMostSeconds);
    write(ToLine(RunPlan(RandomPlan(seed))));
  }
  write("");
  for (const MarkCount& mark : CoverageMarks()) {
    write(absl::StrCat(mark.hits, " ", mark.text));
  }
}

// One of several processes that share a range of seeds.
struct Job {
  std::unique_ptr<Apart> apart;
  uint64_t next = 0;  // the seed of its next report
  bool counting = false;
};

}  // namespace

SimReport RunPlanApart(const SimPlan& plan) {
  Apart apart([&plan](const Apart::Write& write) {
    alarm(kMostSeconds);
    write(ToLine(RunPlan(plan)));
  });
  const std::vector<std::string> lines = apart.ReadLines();
  return lines.empty() ? DeadReport(apart) : FromLine(lines[0]);
}

std::vector<MarkCount> RunSeedsApart(
    const SeedRange& seeds, int jobs,
    const std::function<bool(uint64_t seed, const SimReport&)>& on_report) {
  std::map<std::string, uint64_t> marks;
  std::vector<Job> running;
  const uint64_t stride = std::min<uint64_t>(jobs, seeds.count());
  for (uint64_t i = 0; i < stride; ++i) {
    running.push_back(
        {std::make_unique<Apart>([&, i](const Apart::Write& write) {
           RunSeeds(seeds.first + i, seeds.last, stride, write);
         }),
         seeds.first + i});
  }
  bool go_on = true;
  auto take = [&](Job& job) {
    const std::vector<std::string> lines = job.apart->ReadLines();
    for (const std::string& line : lines) {
      if (!go_on) return true;
      if (line.empty()) {
        job.counting = true;
      } else if (job.counting) {
        const std::pair<std::string, std::string> mark =
            absl::StrSplit(line, absl::MaxSplits(' ', 1));
        marks[mark.second] += ToNumber<uint64_t>(mark.first);
      } else {
        go_on = on_report(std::exchange(job.next, job.next + stride),
                          FromLine(line));
      }
    }
    if (lines.empty() && !job.counting) {
      go_on = on_report(job.next, DeadReport(*job.apart));
    }
    return !lines.empty();
  };
  while (go_on && !running.empty()) {
    std::vector<pollfd> ready;
    for (const Job& job : running) {
      ready.push_back({job.apart->fd(), POLLIN, 0});
    }
    if (poll(ready.data(), ready.size(), -1) < 0) continue;
    for (size_t i = running.size(); i-- > 0 && go_on;) {
      if (ready[i].revents != 0 && !take(running[i])) {
        running.erase(running.begin() + static_cast<int64_t>(i));
      }
    }
  }
  std::vector<MarkCount> counts;
  for (const auto& [text, hits] : marks) counts.push_back({text, hits});
  return counts;
}

}  // namespace penstock
