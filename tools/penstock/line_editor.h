#pragma once

#include <string>

#include "tools/penstock/terminal.h"

namespace penstock {

// A terminal's lines with editing and a history, by readline. One a process:
// readline's state is global. Used by one thread.
class LineEditor {
 public:
  // `terminal` is not owned. An empty `history_file` keeps no history beyond
  // the process; a file is read now, added to line by line, and holds the last
  // kHistoryLines of it. What cannot be read or written there is left out.
  LineEditor(Terminal* terminal, std::string history_file);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  static constexpr int kHistoryLines = 1000;
  // Longer lines are not kept.
  static constexpr size_t kHistoryLineBytes = 4096;

  // As Terminal::ReadLine, behind a prompt. The terminal is in the mode of its
  // own before and after.
  Terminal::Event ReadLine(const std::string& prompt, std::string* line);

 private:
  void Remember(const std::string& line);

  Terminal& terminal_;
  const std::string history_file_;
};

// Where the history of a person's conversations is kept, whose folder is made:
// penstock/chat_history in the folder that XDG_STATE_HOME names, else in
// ~/.local/state. Empty when there is no such place.
std::string ChatHistoryFile();

}  // namespace penstock
