// The output of another verb for the trace of one process, and its page for a browser. Each is a separate child: the screen
// never waits for it, and it ends with `top`.
#pragma once

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace vramscope::cli::top {

class ChildView {
 public:
  ChildView() = default;
  ~ChildView();
  ChildView(const ChildView&) = delete;
  ChildView& operator=(const ChildView&) = delete;

  // Starts `vramscope VERB TRACE`; discards the previous output.
  void ask(const std::string& verb, const std::string& trace);
  void serve(const std::string& trace);  // runs until the next one, or the end
  // The lines so far, without color; empty until the first.
  std::vector<std::string> lines() const;
  std::string address() const;  // of the page; "" until the server has printed it

 private:
  struct Output {
    std::mutex mutex;
    std::string text;
  };
  struct Child {
    pid_t pid = -1;
    std::shared_ptr<Output> output;
  };
  static Child start(std::vector<std::string> command);
  static void end(Child& child);
  static std::string text_of(const Child& child);

  Child verb_, server_;
};

}  // namespace vramscope::cli::top
