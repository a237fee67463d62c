#include "tools/penstock/line_editor.h"

#include <unistd.h>

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

// After <cstdio>, which they need.
#include <readline/history.h>
#include <readline/readline.h>

#include "absl/types/optional.h"

namespace penstock {
namespace {

// What readline's handler was called with; its handlers take no argument.
struct Handed {
  bool done = false;
  absl::optional<std::string> line;  // nullopt: the end
};
Handed& handed() {
  static Handed* const value = new Handed;
  return *value;
}

void TakeHanded(char* line) {
  handed().done = true;
  handed().line = absl::nullopt;
  if (line == nullptr) return;
  handed().line = line;
  std::free(line);
  // Gives the terminal its own mode back before anything is printed.
  rl_callback_handler_remove();
}

}  // namespace

LineEditor::LineEditor(Terminal* terminal, std::string history_file)
    : terminal_(*terminal), history_file_(std::move(history_file)) {
  // So that one key is one character.
  std::setlocale(LC_CTYPE, "");
  if (MB_CUR_MAX == 1) std::setlocale(LC_CTYPE, "C.UTF-8");
  rl_catch_signals = 0;  // Ctrl-C is the terminal's event
  rl_inhibit_completion = 1;
  using_history();
  stifle_history(kHistoryLines);
  if (!history_file_.empty()) read_history(history_file_.c_str());
}

LineEditor::~LineEditor() { rl_callback_handler_remove(); }

Terminal::Event LineEditor::ReadLine(const std::string& prompt,
                                     std::string* line) {
  handed() = Handed();
  rl_callback_handler_install(prompt.c_str(), TakeHanded);
  while (!handed().done) {
    if (terminal_.WaitFor(STDIN_FILENO) == Terminal::Event::kInterrupt) {
      rl_free_line_state();
      rl_callback_sigcleanup();
      rl_replace_line("", 0);
      rl_callback_handler_remove();
      return Terminal::Event::kInterrupt;
    }
    rl_callback_read_char();
  }
  rl_callback_handler_remove();
  if (!handed().line.has_value()) return Terminal::Event::kEnd;
  *line = *std::move(handed().line);
  Remember(*line);
  return Terminal::Event::kLine;
}

void LineEditor::Remember(const std::string& line) {
  if (line.empty() || line.size() > kHistoryLineBytes ||
      line.find('\n') != std::string::npos) {
    return;
  }
  const HIST_ENTRY* last = history_get(history_base + history_length - 1);
  if (last != nullptr && line == last->line) return;
  add_history(line.c_str());
  if (history_file_.empty()) return;
  if (append_history(1, history_file_.c_str()) == 0) {
    history_truncate_file(history_file_.c_str(), kHistoryLines);
  }
}

std::string ChatHistoryFile() {
  namespace fs = std::filesystem;
  const char* state = std::getenv("XDG_STATE_HOME");
  const char* home = std::getenv("HOME");
  fs::path folder;
  if (state != nullptr && state[0] == '/') {
    folder = state;
  } else if (home != nullptr && home[0] == '/') {
    folder = fs::path(home) / ".local" / "state";
  } else {
    return "";
  }
  std::error_code error;
  folder /= "penstock";
  fs::create_directories(folder, error);
  if (error) return "";
  const fs::path file = folder / "chat_history";
  // What people say is theirs to read.
  if (!fs::exists(file, error)) std::ofstream(file).close();
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write, error);
  return error ? "" : file.string();
}

}  // namespace penstock
